#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts cuslice where HAMi-core's library is looked for by those who mount the whole folder, as kai-resource-isolator does:
#
#   drop-in.sh INSTALLATION FOLDER [MOUNTED]
#
# FOLDER is /usr/local/vgpu of a node, or where that is mounted; MOUNTED is the folder's path in containers, by default
# /usr/local/vgpu. libvgpu.so needs the files beside it, so it is put there last.
set -eu
source=$1/lib/cuslice folder=$2 mounted=${3:-/usr/local/vgpu}
mkdir -p "$folder"
put() {
    cp "$source/$1" "$folder/.new"
    mv -T "$folder/.new" "$folder/$2"
}
for name in libcuda.so libnvidia-ml.so.1 libcuslice-config.so; do put "$name" "$name"; done
put libcuslice.so libvgpu.so
echo "$mounted/libvgpu.so" >"$folder/.new"
mv -T "$folder/.new" "$folder/ld.so.preload"
