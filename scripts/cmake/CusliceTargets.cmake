# What every target of ours is built with, and the three kinds of target there are.

add_library(cuslice_flags INTERFACE)
target_include_directories(cuslice_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(cuslice_flags INTERFACE -Wall -Wextra -Wshadow -Wpedantic -Wno-missing-field-initializers)
if(CUSLICE_WERROR)
  target_compile_options(cuslice_flags INTERFACE -Werror)
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

# Code that runs inside somebody else's process: no exceptions, no RTTI, nothing of libstdc++ at run time.
add_library(cuslice_guest_flags INTERFACE)
target_link_libraries(cuslice_guest_flags INTERFACE cuslice_flags)
target_compile_options(cuslice_guest_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>
  -ftls-model=initial-exec)

# Puts a target where an installation has it, below the build folder, and installs it there.
function(cuslice_place target folder)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
  install(TARGETS ${target} RUNTIME DESTINATION ${folder} LIBRARY DESTINATION ${folder} NAMELINK_SKIP)
endfunction()

# A test program on Catch2, whichever major version the distribution has.
find_package(Catch2 QUIET)
# Seconds after which a test hangs: many times what the longest one takes under a sanitizer, as the machine may be busy with
# other things. No test fails of being slow.
set(CUSLICE_TEST_TIMEOUT 1500)
function(cuslice_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cuslice_flags ${arg_LIBRARIES})
  if(Catch2_VERSION VERSION_GREATER_EQUAL 3)
    target_link_libraries(${name} PRIVATE Catch2::Catch2WithMain)
  else()
    target_link_libraries(${name} PRIVATE cuslice_catch2_main Catch2::Catch2)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${CUSLICE_TEST_TIMEOUT})
endfunction()
if(Catch2_FOUND AND Catch2_VERSION VERSION_LESS 3)
  add_library(cuslice_catch2_main STATIC ${PROJECT_SOURCE_DIR}/tests/catch2_main.cpp)
  # Not ours to look for mistakes in, and instrumented it takes minutes to compile.
  target_link_libraries(cuslice_catch2_main PUBLIC Catch2::Catch2)
  target_compile_options(cuslice_catch2_main PRIVATE -O0)
endif()
