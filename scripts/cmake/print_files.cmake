# SPDX-License-Identifier: Apache-2.0
# Writes what a program prints into files: cmake -DPROGRAM= -DPRINTED= -DFOLDER= -P print_files.cmake
#   PROGRAM  the program, behind an emulator where one is needed
#   PRINTED  a list of `word,word=file`: the program's arguments, and the file in FOLDER
foreach(one IN LISTS PRINTED)
  string(REGEX MATCH "^([^=]*)=(.*)$" unused "${one}")
  set(file ${FOLDER}/${CMAKE_MATCH_2})
  string(REPLACE "," ";" words "${CMAKE_MATCH_1}")
  cmake_path(GET file PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${PROGRAM} ${words} OUTPUT_FILE ${file} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${PROGRAM} ${words}: ${failed}")
  endif()
endforeach()
