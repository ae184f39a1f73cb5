# SPDX-License-Identifier: Apache-2.0
# Finds the headers of CUDA and NVML: those of an installed toolkit of version 13, else those of NVIDIA's packages of the
# Python index, taken into the build folder. Defines the target cuslice_cuda_headers. Nothing of the toolkit is linked.

# nvidia-cuda-runtime alone doesn't suffice: its headers include crt/ and cudaProfiler.h, which are packages of their own.
set(CUSLICE_CUDA_PACKAGES nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-profiler-api==13.0.85)
set(CUSLICE_CUDA_INCLUDE "" CACHE PATH "A folder with CUDA 13's cuda.h, cuda_runtime_api.h, cudaProfiler.h and crt/")
# A package of its own: many toolkits are installed without it.
set(CUSLICE_NVML_PACKAGE nvidia-nvml-dev==13.0.87)
set(CUSLICE_NVML_INCLUDE "" CACHE PATH "A folder with CUDA 13's nvml.h")
option(CUSLICE_CUDA_FROM_PACKAGES "Take CUDA's headers from the Python index even where a toolkit is installed" OFF)

# CUDA_VERSION of a folder that has all headers that are needed, else 0.
function(cuslice_cuda_version folder out)
  set(${out} 0 PARENT_SCOPE)
  foreach(header cuda.h cudaTypedefs.h cudaProfiler.h cuda_runtime_api.h crt/host_defines.h)
    if(NOT EXISTS ${folder}/${header})
      return()
    endif()
  endforeach()
  file(STRINGS ${folder}/cuda.h line REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" version "${line}")
  set(${out} ${version} PARENT_SCOPE)
endfunction()

# A Python that has pip: python3's own, else that of a virtual environment in the build folder.
function(cuslice_python_with_pip folder out)
  find_program(CUSLICE_PYTHON python3 DOC "Python 3, for CUDA's headers where no toolkit is installed")
  if(NOT CUSLICE_PYTHON)
    message(FATAL_ERROR "The headers of CUDA 13 and its nvml.h are needed. A toolkit with both isn't here, and no python3 to "
                        "fetch them with: install either, or name the folders that have them with -DCUSLICE_CUDA_INCLUDE= and "
                        "-DCUSLICE_NVML_INCLUDE=")
  endif()
  set(${out} ${CUSLICE_PYTHON} PARENT_SCOPE)
  execute_process(COMMAND ${CUSLICE_PYTHON} -m pip --version RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    execute_process(COMMAND ${CUSLICE_PYTHON} -m venv ${folder}/venv RESULT_VARIABLE failed
                    OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(failed)
      message(FATAL_ERROR "CUDA 13's headers are needed, and python3 here has neither pip nor what makes a virtual "
                          "environment: install python3-pip or python3-venv, or a CUDA 13 toolkit, or name a folder that "
                          "has the headers with -DCUSLICE_CUDA_INCLUDE=\n${said}")
    endif()
    set(${out} ${folder}/venv/bin/python3 PARENT_SCOPE)
  endif()
endfunction()

# Downloads packages into a folder and unpacks them there. They unpack into one tree: nvidia/cu13/include.
function(cuslice_fetch_cuda_headers folder)
  list(JOIN ARGN ", " named)
  message(STATUS "Taking headers from the Python index (${named})")
  cuslice_python_with_pip(${folder} python)
  file(REMOVE_RECURSE ${folder}/wheels)
  execute_process(COMMAND ${python} -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all:
                          --dest ${folder}/wheels ${ARGN}
                  RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "CUDA 13's headers are needed, and fetching ${named} failed. If this machine is offline: install a "
                        "CUDA 13 toolkit with its NVML headers, or name the folders that have cuda.h and nvml.h with "
                        "-DCUSLICE_CUDA_INCLUDE= and -DCUSLICE_NVML_INCLUDE=\npip said: ${said}")
  endif()
  file(GLOB wheels ${folder}/wheels/*.whl)
  foreach(wheel IN LISTS wheels)
    file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${folder} PATTERNS nvidia/cu13/include/*)
  endforeach()
  file(REMOVE_RECURSE ${folder}/wheels)
endfunction()

set(cuda_packages_folder ${PROJECT_BINARY_DIR}/cuda-headers)
set(cuda_packages_include ${cuda_packages_folder}/nvidia/cu13/include)
if(CUSLICE_CUDA_INCLUDE)
  cuslice_cuda_version(${CUSLICE_CUDA_INCLUDE} version)
  if(version LESS 13000 OR version GREATER_EQUAL 14000)
    message(FATAL_ERROR "CUSLICE_CUDA_INCLUDE=${CUSLICE_CUDA_INCLUDE} doesn't have CUDA 13's cuda.h, cudaTypedefs.h, "
                        "cudaProfiler.h, cuda_runtime_api.h and crt/host_defines.h")
  endif()
else()
  set(folders ${cuda_packages_include})
  if(NOT CUSLICE_CUDA_FROM_PACKAGES)
    set(folders $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include /usr/local/cuda-13.0/include
                /usr/include ${cuda_packages_include})
  endif()
  set(found "")
  foreach(folder IN LISTS folders)
    cuslice_cuda_version(${folder} version)
    if(version GREATER_EQUAL 13000 AND version LESS 14000)
      set(found ${folder})
      break()
    endif()
  endforeach()
  if(NOT found)
    cuslice_fetch_cuda_headers(${cuda_packages_folder} ${CUSLICE_CUDA_PACKAGES})
    set(found ${cuda_packages_include})
    cuslice_cuda_version(${found} version)
    if(version LESS 13000 OR version GREATER_EQUAL 14000)
      message(FATAL_ERROR "The packages didn't bring CUDA 13's headers to ${found}")
    endif()
  endif()
  # Not cached: another toolkit, or the option above, is seen by the next configuration.
  set(CUSLICE_CUDA_INCLUDE ${found})
endif()
message(STATUS "CUDA headers: ${CUSLICE_CUDA_INCLUDE} (${version})")

if(CUSLICE_NVML_INCLUDE)
  if(NOT EXISTS ${CUSLICE_NVML_INCLUDE}/nvml.h)
    message(FATAL_ERROR "CUSLICE_NVML_INCLUDE=${CUSLICE_NVML_INCLUDE} doesn't have nvml.h")
  endif()
elseif(EXISTS ${CUSLICE_CUDA_INCLUDE}/nvml.h)
  set(CUSLICE_NVML_INCLUDE ${CUSLICE_CUDA_INCLUDE})
else()
  if(NOT EXISTS ${cuda_packages_include}/nvml.h)
    cuslice_fetch_cuda_headers(${cuda_packages_folder} ${CUSLICE_NVML_PACKAGE})
  endif()
  set(CUSLICE_NVML_INCLUDE ${cuda_packages_include})
endif()
message(STATUS "NVML header: ${CUSLICE_NVML_INCLUDE}")

add_library(cuslice_cuda_headers INTERFACE)
target_include_directories(cuslice_cuda_headers SYSTEM INTERFACE ${CUSLICE_CUDA_INCLUDE} ${CUSLICE_NVML_INCLUDE})
# Programs go on calling what NVIDIA's headers have marked as deprecated, and so it is hooked and answered.
target_compile_options(cuslice_cuda_headers INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wno-deprecated-declarations>)
