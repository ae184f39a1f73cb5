# SPDX-License-Identifier: Apache-2.0
# The libraries that are used from their headers alone: CLI11, nlohmann-json and toml++. Any place will do that has
# them, as /usr/include has Debian's. Only their own folders are put before the compiler, by links: another C
# library's headers lie beside them, and a build against an old one (scripts/cmake/zig.cmake) must not see those.
set(cuslice_header_links ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${cuslice_header_links})

# Defines the target: FILE is one of its headers, PACKAGE is how Debian calls it.
function(cuslice_header_library target file package)
  find_path(${target}_INCLUDE ${file} PATHS /usr/include /usr/local/include NO_CMAKE_FIND_ROOT_PATH
            DOC "The folder that has ${file}")
  if(NOT ${target}_INCLUDE)
    message(FATAL_ERROR "${file} is needed, a header of ${package}: install it, or name a folder that has it in the "
                        "environment's CMAKE_INCLUDE_PATH")
  endif()
  get_filename_component(folder ${file} DIRECTORY)
  file(CREATE_LINK ${${target}_INCLUDE}/${folder} ${cuslice_header_links}/${folder} SYMBOLIC)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${cuslice_header_links})
endfunction()

cuslice_header_library(cuslice_cli11 CLI/CLI.hpp libcli11-dev)
cuslice_header_library(cuslice_json nlohmann/json.hpp nlohmann-json3-dev)
cuslice_header_library(cuslice_tomlplusplus toml++/toml.h libtomlplusplus-dev)
