# SPDX-License-Identifier: Apache-2.0
# Installs the documents with their links: run by `cmake --install`, with FROM (the sources) and TO (the folder in the
# prefix). What is linked and isn't installed, the sources, becomes plain text.
set(folder ${CMAKE_INSTALL_PREFIX}/${TO})
file(GLOB_RECURSE pages RELATIVE ${FROM} ${FROM}/docs/*.md)
foreach(page README.md README.zh-CN.md CHANGELOG.md CONTRIBUTING.md SECURITY.md ${pages})
  file(READ ${FROM}/${page} text)
  string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)*(\\.ci|cli|config|fake|include|policy|scripts|shim|tests|virtual_gpu)(/[^)]*)?\\)"
         "\\1" text "${text}")
  file(WRITE "$ENV{DESTDIR}${folder}/${page}" "${text}")  # file(INSTALL) knows of DESTDIR by itself
endforeach()
file(GLOB_RECURSE pictures RELATIVE ${FROM} ${FROM}/docs/*.svg ${FROM}/docs/*.png)
foreach(file LICENSE ${pictures})
  cmake_path(GET file PARENT_PATH below)
  file(INSTALL ${FROM}/${file} DESTINATION ${folder}/${below})
endforeach()
file(INSTALL ${FROM}/docs/samples/towers DESTINATION ${folder}/docs/samples)
