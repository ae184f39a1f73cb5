# SPDX-License-Identifier: Apache-2.0
# The packages that CPack makes: a tarball, which works from any folder, and a .deb. scripts/release.sh makes them,
# and the wheel.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_VENDOR cuslice)
set(CPACK_PACKAGE_CONTACT "the cuslice project <cuslice@localhost>")
set(CPACK_PACKAGE_FILE_NAME cuslice-${PROJECT_VERSION}-linux-${CUSLICE_MACHINE})

# The libraries go to /usr/lib/cuslice, where ldconfig doesn't look: a borrowed name would make cuslice everybody's
# libcuda.
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Debian's word for the processor; by default that of the machine that packs.
if(CUSLICE_MACHINE STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
else()
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# Below the project's own line.
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Gives an unmodified CUDA program a part of each GPU's memory, which it sees
as the whole GPU. A fake GPU is included, for machines without one.")
if(DEFINED CUSLICE_GLIBC)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${CUSLICE_GLIBC})")
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
