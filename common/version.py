"""The version of Frontage: it stands here once; the build, each role and the API's description read it."""

from typing import Final

VERSION: Final = "1.0.0"
