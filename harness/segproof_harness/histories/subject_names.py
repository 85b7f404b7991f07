# SPDX-License-Identifier: Apache-2.0
"""Which subject a name means; a subject runs operations on a structure.

| name | subject |
| --- | --- |
| `model` | the model under the profile of whom it is compared with |
| `model:kafka-4.4.0` | the model under that profile |
| `impl` | the implementation on files in memory |
| `impl:real-files` | the implementation on files of the operating system |
| `kafka-4.4.0` | the real classes of that release, in a JVM |
| `package.module:Class` | a class with the implementation's constructor and methods, in memory |
| `package.module:Class@real-files` | the same on files of the operating system |
"""

from segproof_harness.releases.pinned import RELEASES
from segproof_harness.releases.release_subject import OracleSubject
from segproof_harness.structures.structure import Structure, load
from segproof_harness.subjects.base import Subject
from segproof_harness.subjects.implementation import ImplementationSubject
from segproof_harness.subjects.model import ModelSubject
from segproof_model import releases

REAL_FILES = "real-files"


def subject_named(name: str, structure: Structure) -> Subject:
    """Return the subject. Raises ValueError that says what is wrong with the name."""
    if name == "model":
        return ModelSubject(structure, releases.SEGPROOF)
    if name.startswith("model:"):
        release = releases.RELEASES.get(name.removeprefix("model:"))
        if release is None:
            known = ", ".join(releases.RELEASES)
            raise ValueError(f"subject {name!r}: no such profile; known: {known}")
        return ModelSubject(structure, release, name=name)
    if name in RELEASES:
        return OracleSubject(structure, RELEASES[name])
    if name in ("impl", f"impl:{REAL_FILES}"):
        impl_class = structure.impl_class()
        return ImplementationSubject(structure, impl_class, name, name != "impl")
    if ":" in name:
        target, _, where = name.partition("@")
        if where not in ("", REAL_FILES):
            raise ValueError(f"subject {name!r}: after @ only {REAL_FILES!r} is known")
        return ImplementationSubject(structure, load(target), name, bool(where))
    raise ValueError(
        f"no subject {name!r}; known: model, model:PROFILE, impl, impl:{REAL_FILES}, "
        "package.module:Class, or a release such as kafka-4.4.0"
    )
