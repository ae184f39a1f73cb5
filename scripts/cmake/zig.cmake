# SPDX-License-Identifier: Apache-2.0
# The toolchain of a release: zig's clang, its C++ library (linked into each file), and the symbols of an old C
# library. What it builds starts wherever that C library or a newer one is. The preset is release-old-glibc;
# scripts/release.sh uses it.
#
# zig comes from the Python index (`pip install ziglang`). Its first build makes its C++ library, which takes a
# minute, and keeps it in ZIG_GLOBAL_CACHE_DIR (by default ~/.cache/zig).

set(CMAKE_SYSTEM_NAME Linux)
set(CUSLICE_RELEASE_FOR x86_64 CACHE STRING "The processor that a release is for: x86_64 or aarch64")
set(CMAKE_SYSTEM_PROCESSOR ${CUSLICE_RELEASE_FOR})
set(CUSLICE_GLIBC 2.17 CACHE STRING "The C library that a release needs at least: 2.17 is that of manylinux2014")
set(CUSLICE_ZIG "" CACHE FILEPATH "zig; by default that of the Python package ziglang")

# CMake reads this file again in folders of its own, to try the compiler.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CUSLICE_RELEASE_FOR CUSLICE_GLIBC CUSLICE_ZIG CUSLICE_ZIG_TOOLS)
if(NOT CUSLICE_ZIG)
  execute_process(COMMAND python3 -c "import ziglang, os; print(os.path.join(os.path.dirname(ziglang.__file__), 'zig'))"
                  OUTPUT_VARIABLE zig OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT zig)
    message(FATAL_ERROR "zig is needed: `pip install ziglang` for this python3, or name it with -DCUSLICE_ZIG=")
  endif()
  set(CUSLICE_ZIG ${zig} CACHE FILEPATH "zig; by default that of the Python package ziglang" FORCE)
endif()

# zig is one program with the others' names as its first word, and CMake and ccache want programs.
if(NOT CUSLICE_ZIG_TOOLS)
  set(CUSLICE_ZIG_TOOLS ${CMAKE_BINARY_DIR}/zig-tools)
  set(words "-target ${CUSLICE_RELEASE_FOR}-linux-gnu.${CUSLICE_GLIBC}")
  foreach(tool cc c++ ar ranlib)
    if(NOT tool MATCHES "^c")
      set(words "")
    endif()
    file(CONFIGURE OUTPUT ${CUSLICE_ZIG_TOOLS}/${tool}
         CONTENT "#!/bin/sh\nexec '@CUSLICE_ZIG@' @tool@ @words@ \"$@\"\n" @ONLY)
    file(CHMOD ${CUSLICE_ZIG_TOOLS}/${tool} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                        WORLD_READ WORLD_EXECUTE)
  endforeach()
endif()
set(CMAKE_C_COMPILER ${CUSLICE_ZIG_TOOLS}/cc)
set(CMAKE_CXX_COMPILER ${CUSLICE_ZIG_TOOLS}/c++)
set(CMAKE_ASM_COMPILER ${CUSLICE_ZIG_TOOLS}/cc)
# zig's own libraries come with what debuggers want, several times the size of the rest.
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -s)
endforeach()
set(CMAKE_AR ${CUSLICE_ZIG_TOOLS}/ar)
set(CMAKE_RANLIB ${CUSLICE_ZIG_TOOLS}/ranlib)
