# SPDX-License-Identifier: Apache-2.0
# Options that every target of ours is built with, and the three kinds of target.

add_library(cuslice_flags INTERFACE)
target_include_directories(cuslice_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(cuslice_flags INTERFACE -Wall -Wextra -Wshadow -Wpedantic -Wno-missing-field-initializers)
if(CUSLICE_WERROR)
  target_compile_options(cuslice_flags INTERFACE -Werror)
endif()
# GCC 12 sees "text" + std::string overlap itself where it optimises fully: gcc.gnu.org/bugzilla/show_bug.cgi?id=105329.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12
   AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(cuslice_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CUSLICE_LOCK_ORDER)
  target_compile_definitions(cuslice_flags INTERFACE CUSLICE_CHECK_LOCK_ORDER)
endif()
if(CUSLICE_SANITIZE)
  target_compile_options(cuslice_flags INTERFACE -fsanitize=${CUSLICE_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=undefined
    # A C program may hand any int to a function that takes an enum, and the answer is CUDA_ERROR_INVALID_VALUE.
    -fno-sanitize=enum
    # GCC 12 sees uninitialised members in <regex>, which Catch2 2 includes, when it instruments.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(cuslice_flags INTERFACE -fsanitize=${CUSLICE_SANITIZE})
endif()

# Options that not every linker knows, as lists that are empty there. zig's has no need of them: it hides its own
# libraries' symbols and gives code no pages of its own unless asked to.
include(CheckLinkerFlag)
set(CUSLICE_EXCLUDE_LIBS -Wl,--exclude-libs,ALL)
set(CUSLICE_NO_SEPARATE_CODE -Wl,-z,noseparate-code)
# libdl by its full name: new C libraries have it only for those who ask for it at run time, as old ones need. zig's
# stands for an old one, and takes the short name.
set(CUSLICE_LIBDL -l:libdl.so.2)
foreach(option CUSLICE_EXCLUDE_LIBS CUSLICE_NO_SEPARATE_CODE CUSLICE_LIBDL)
  check_linker_flag(C ${${option}} ${option}_KNOWN)
endforeach()
foreach(option CUSLICE_EXCLUDE_LIBS CUSLICE_NO_SEPARATE_CODE)
  if(NOT ${option}_KNOWN)
    set(${option} "")
  endif()
endforeach()
if(NOT CUSLICE_LIBDL_KNOWN)
  set(CUSLICE_LIBDL -ldl)
endif()

# Code that runs inside somebody else's process: no exceptions, no RTTI, nothing of libstdc++ at run time.
add_library(cuslice_preload_flags INTERFACE)
target_link_libraries(cuslice_preload_flags INTERFACE cuslice_flags)
target_compile_options(cuslice_preload_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>
  -ftls-model=initial-exec)

# Puts a target where an installation has it, below the build folder, and installs it there.
function(cuslice_place target folder)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
  # A wheel has programs in a folder of its own; pip puts them where the environment has its bin/.
  if(SKBUILD AND folder STREQUAL "bin")
    set(folder ${SKBUILD_SCRIPTS_DIR})
  endif()
  install(TARGETS ${target} RUNTIME DESTINATION ${folder} LIBRARY DESTINATION ${folder} NAMELINK_SKIP)
endfunction()

# Compiles a target's sources in COUNT groups instead of one by one, which takes less time, where CUSLICE_UNITY is on.
# A source's group follows from its name, so that a new one moves no other.
#   ALONE    shares a name without linkage with others
function(cuslice_in_groups target count)
  if(NOT CUSLICE_UNITY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ALONE")
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME)
    string(MD5 hash ${name})
    string(SUBSTRING ${hash} 0 4 hash)
    math(EXPR group "0x${hash} % ${count}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# A test program on Catch2, whichever major version the distribution has. Each of its cases is a test of CTest's, named
# "<name>: <case>"; what is left out is shown as skipped (tests/catch2_main.cpp).
if(CUSLICE_TESTS)
  find_package(Catch2 QUIET)
endif()
if(Catch2_FOUND)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
# Seconds after which a test hangs: many times what the longest one takes under a sanitizer, as the machine may be
# busy with other things. No test fails of being slow.
set(CUSLICE_TEST_TIMEOUT 1500)

# The command that starts a test program in the build's look at its cases: an emulator for another processor's build.
#
# tsan can't place its shadow where the kernel spreads mappings very widely. Off where that may be turned off;
# scripts/test.sh does the same for the tests.
set(cuslice_case_launcher ${CMAKE_CROSSCOMPILING_EMULATOR})
if(CUSLICE_SANITIZE MATCHES "thread")
  execute_process(COMMAND setarch -R true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed)
    set(cuslice_case_launcher setarch -R)
  endif()
endif()

# The cases of a test program, as tests of CTest's. What a case is tagged with is a label of its test.
#   PREFIX       stands before each name; the program's if it isn't given
#   WITHOUT      the cases with this tag are left out
#   LABELS       of all of them; the folder in tests/ or lab/ is one too
#   PROPERTIES   of all of them, as set_tests_properties takes them
function(cuslice_cases program)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX;WITHOUT" "LABELS;PROPERTIES")
  if(NOT arg_PREFIX)
    set(arg_PREFIX ${program})
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "^[^/]+/([^/]+).*" "\\1" folder ${folder})
  list(PREPEND arg_LABELS ${folder})
  list(JOIN arg_LABELS "," labels)
  list(PREPEND arg_PROPERTIES TIMEOUT ${CUSLICE_TEST_TIMEOUT} SKIP_RETURN_CODE 77)
  set(words --prefix ${arg_PREFIX} --labels ${labels})
  if(arg_WITHOUT)
    list(APPEND words --without ${arg_WITHOUT})
  endif()
  while(arg_PROPERTIES)
    list(POP_FRONT arg_PROPERTIES key value)
    list(APPEND words --property ${key} ${value})
  endwhile()
  set(cases ${CMAKE_CURRENT_BINARY_DIR}/${arg_PREFIX}_cases.cmake)
  set(script ${PROJECT_SOURCE_DIR}/scripts/cmake/discover_cases.py)
  add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${cases} VERBATIM
    COMMAND ${Python3_EXECUTABLE} ${script} --file ${cases} ${words} -- ${cuslice_case_launcher} $<TARGET_FILE:${program}>)
  set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS ${script})
  # A program that was not built is a test that can't be run, so that it isn't missed.
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${arg_PREFIX}_include.cmake)
  file(WRITE ${include} "if(EXISTS \"${cases}\")\n  include(\"${cases}\")\nelse()\n"
                        "  add_test(${arg_PREFIX}_was_not_built ${program})\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()

# A test program and its cases: LABELS and PROPERTIES as above.
#   OWN_FLAGS    its sources are compiled with flags of their own, which no precompiled header fits
function(cuslice_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OWN_FLAGS" "" "SOURCES;LIBRARIES;LABELS;PROPERTIES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cuslice_flags ${arg_LIBRARIES} cuslice_catch2_main)
  # Most of what compiles is Catch2's assertions, in twice the time if it is optimised. What is tested is a library of
  # its own.
  target_compile_options(${name} PRIVATE -O0)
  if(NOT arg_OWN_FLAGS)
    target_precompile_headers(${name} REUSE_FROM cuslice_test_headers)
  endif()
  if(cuslice_guest_tests IN_LIST arg_LIBRARIES)
    set_property(GLOBAL APPEND PROPERTY CUSLICE_NAMING_TESTS ${name})
  endif()
  cuslice_cases(${name} LABELS ${arg_LABELS} PROPERTIES ${arg_PROPERTIES})
endfunction()
if(Catch2_FOUND)
  add_library(cuslice_catch2_main STATIC ${PROJECT_SOURCE_DIR}/tests/allowed.cpp ${PROJECT_SOURCE_DIR}/tests/catch2_main.cpp)
  target_compile_definitions(cuslice_catch2_main PRIVATE CUSLICE_TEST_SOURCE_ROOT="${PROJECT_SOURCE_DIR}")
  target_include_directories(cuslice_catch2_main PRIVATE ${PROJECT_SOURCE_DIR})
  # Not ours to look for mistakes in, and instrumented it takes minutes to compile.
  target_link_libraries(cuslice_catch2_main PUBLIC Catch2::Catch2)
  target_compile_options(cuslice_catch2_main PRIVATE -O0)

  # Catch2's headers, which every test program would spend half of its compile time on. An executable, and built with the same
  # options as the programs that use them: GCC takes no precompiled header that was built otherwise.
  file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cpp "int main() {}\n")
  add_executable(cuslice_test_headers ${PROJECT_BINARY_DIR}/test_headers.cpp)
  target_link_libraries(cuslice_test_headers PRIVATE cuslice_flags Catch2::Catch2)
  target_compile_options(cuslice_test_headers PRIVATE -O0)
  target_precompile_headers(cuslice_test_headers PRIVATE ${PROJECT_SOURCE_DIR}/tests/catch.h <filesystem> <fstream>)
endif()
