// SPDX-License-Identifier: Apache-2.0
// A program on the shared CUDA runtime: takes blocks of 64 MiB until one is refused, and waits for its input's end;
// and before that one of 512 bytes, if it is told so.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <iostream>
#include <string>

int main() {
    int version = 0;
    cudaRuntimeGetVersion(&version);
    for (std::string line; std::getline(std::cin, line);) {
        if (line == "pid") {
            std::cout << getpid() << std::endl;
        } else if (line == "version") {
            std::cout << version << std::endl;
        } else if (line == "first") {
            void* block = nullptr;
            std::cout << static_cast<int>(cudaMalloc(&block, 512)) << std::endl;
        } else {
            unsigned granted = 0;
            void* block = nullptr;
            cudaError_t result = cudaSuccess;
            while ((result = cudaMalloc(&block, 64 << 20)) == cudaSuccess)
                ++granted;
            std::cout << static_cast<int>(result) << ' ' << granted << std::endl;
        }
    }
}
