# Finds CUDA's headers: an installed toolkit of version 13, else the package nvidia-cuda-runtime of the Python index, taken
# into the build folder. Defines the target cuslice_cuda_headers. Nothing of the toolkit is linked.

set(CUSLICE_CUDA_PACKAGE "nvidia-cuda-runtime==13.0.96")
set(CUSLICE_CUDA_INCLUDE "" CACHE PATH "A folder with CUDA 13's cuda.h and cudaTypedefs.h")

function(cuslice_cuda_version folder out)
  set(${out} 0 PARENT_SCOPE)
  if(EXISTS ${folder}/cuda.h AND EXISTS ${folder}/cudaTypedefs.h AND EXISTS ${folder}/cuda_runtime_api.h)
    file(STRINGS ${folder}/cuda.h line REGEX "^#define CUDA_VERSION [0-9]+")
    string(REGEX MATCH "[0-9]+" version "${line}")
    set(${out} ${version} PARENT_SCOPE)
  endif()
endfunction()

if(NOT CUSLICE_CUDA_INCLUDE)
  foreach(folder $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include /usr/local/cuda-13.0/include
                 /usr/include ${PROJECT_BINARY_DIR}/cuda-headers/nvidia/cu13/include)
    cuslice_cuda_version(${folder} version)
    if(version GREATER_EQUAL 13000 AND version LESS 14000)
      set(CUSLICE_CUDA_INCLUDE ${folder} CACHE PATH "" FORCE)
      break()
    endif()
  endforeach()
endif()
if(NOT CUSLICE_CUDA_INCLUDE)
  message(STATUS "No CUDA 13 headers here: taking ${CUSLICE_CUDA_PACKAGE} from the Python index")
  find_program(CUSLICE_PYTHON python3 REQUIRED)
  set(wheels ${PROJECT_BINARY_DIR}/cuda-headers)
  execute_process(COMMAND ${CUSLICE_PYTHON} -m pip download --quiet --no-deps --only-binary=:all: --dest ${wheels}
                          ${CUSLICE_CUDA_PACKAGE}
                  RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "CUDA 13's headers are needed: install a toolkit, or name a folder with -DCUSLICE_CUDA_INCLUDE=")
  endif()
  file(GLOB wheel ${wheels}/*.whl)
  file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${wheels})
  set(CUSLICE_CUDA_INCLUDE ${wheels}/nvidia/cu13/include CACHE PATH "" FORCE)
endif()
cuslice_cuda_version(${CUSLICE_CUDA_INCLUDE} version)
if(version LESS 13000 OR version GREATER_EQUAL 14000)
  message(FATAL_ERROR "${CUSLICE_CUDA_INCLUDE} has no CUDA 13 headers")
endif()
message(STATUS "CUDA headers: ${CUSLICE_CUDA_INCLUDE} (${version})")

add_library(cuslice_cuda_headers INTERFACE)
target_include_directories(cuslice_cuda_headers SYSTEM INTERFACE ${CUSLICE_CUDA_INCLUDE})
