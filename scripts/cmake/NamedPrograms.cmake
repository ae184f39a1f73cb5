# SPDX-License-Identifier: Apache-2.0
# The programs and libraries of the build that tests name in their sources ("guest_bounds", Guest::route("linked")): each
# test depends on its own. Naming another in a source is enough: it is built before the test's next run.

# For every test that links cuslice_guest_tests, and for those of CUSLICE_NAMING_TESTS. Beside the guests, the targets that are
# given can be named.
function(cuslice_depend_on_named_programs)
  set(request known)
  get_property(guests DIRECTORY ${PROJECT_SOURCE_DIR}/tests/preload/guest PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS guests ARGN)
    if(TARGET ${target})  # not in older sources, on which tests are seen failing
      string(APPEND request " ${target}")
    endif()
  endforeach()
  set(read "")
  get_property(tests GLOBAL PROPERTY CUSLICE_NAMING_TESTS)
  foreach(test IN LISTS tests)
    get_target_property(folder ${test} SOURCE_DIR)
    get_target_property(sources ${test} SOURCES)
    list(FILTER sources EXCLUDE REGEX "^\\$<")
    string(APPEND request "\n${test}")
    foreach(source IN LISTS sources)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
      string(APPEND request " ${name}")
      list(APPEND read ${source})
    endforeach()
  endforeach()

  set(script ${PROJECT_SOURCE_DIR}/scripts/cmake/named_programs.py)
  set(asked ${CMAKE_CURRENT_BINARY_DIR}/named_programs.txt)
  set(found ${CMAKE_CURRENT_BINARY_DIR}/named_programs.cmake)
  file(CONFIGURE OUTPUT ${asked} CONTENT "${request}\n" @ONLY)
  set(command ${Python3_EXECUTABLE} ${script} --request ${asked} --out ${found})
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
  include(${found})

  # Built before the build's own files, which depend on it: CMake runs anew where a dependency has changed.
  add_custom_command(OUTPUT ${found} COMMAND ${command} --depfile ${found}.d DEPENDS ${script} ${asked} ${read} DEPFILE ${found}.d
                     COMMENT "Looking for the programs that tests name" VERBATIM)
  add_custom_target(cuslice_named_programs DEPENDS ${found})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${found})
endfunction()
