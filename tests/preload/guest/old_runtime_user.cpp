// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

extern "C" int cudaGetDeviceCount(int* count);
extern "C" int cudaGetDevice(int* device);

int main() {
    int count = -1, device = -1;
    const int counted = cudaGetDeviceCount(&count), asked = cudaGetDevice(&device);
    std::printf("%d %d %d %d\n", counted, count, asked, device);
}
