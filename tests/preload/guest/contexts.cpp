// SPDX-License-Identifier: Apache-2.0
// Devices, contexts and modules.
#include <cstdio>
#include <cstring>

// First: it includes cuda.h with the old versions of functions under their own names.
#include "tests/preload/guest/guest.h"

#include "fake/private_driver.h"
#include "tests/preload/guest/refusal_check.h"

namespace guest {
namespace {

std::string uuid_of(const Program& program, CUdevice device) {
    CUuuid uuid{};
    const CUresult result = program.driver.cuDeviceGetUuid_v2(&uuid, device);
    char text[64];
    unsigned char b[16];
    std::memcpy(b, uuid.bytes, sizeof b);
    std::snprintf(text, sizeof text, " GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                  b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    return answer(result) + text;
}

CUdevice device(const std::string& text) { return static_cast<CUdevice>(std::stol(text)); }

CUresult make_current(Program& program, CUcontext context) {
    program.current = context;
    return program.driver.cuCtxSetCurrent(context);
}

const cuslice::fake::PrivateDriver* private_driver(const Program& program) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    program.driver.cuGetProcAddress_v2(cuslice::fake::kPrivateDriver, &found, CUDA_VERSION, 0, &status);
    return static_cast<const cuslice::fake::PrivateDriver*>(found);
}

// PTX with one variable of so many bytes.
std::string module_text(size_t bytes) {
    return ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 data[" +
           std::to_string(bytes) + "];\n";
}

// PTX with so many kernels.
std::string kernels_text(size_t count) {
    std::string text = ".version 7.0\n.target sm_50\n.address_size 64\n";
    for (size_t i = 0; i < count; ++i)
        text += ".visible .entry k" + std::to_string(i) + "(){ret;}\n";
    return text;
}

// PTX with two kernels, each of so many bytes of local memory a thread.
std::string local_kernels_text(const std::string& bytes) {
    const std::string body = "(){.local .align 8 .b8 spot[" + bytes + "]; ret;}\n";
    return ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry first" + body + ".visible .entry second" +
           body;
}

}  // namespace

void add_context_commands(Commands& commands) {
    commands["init"] = [](Program& p, const Words&) { return answer(p.driver.cuInit(0)); };
    commands["count"] = [](Program& p, const Words&) {
        int count = 0;
        const CUresult result = p.driver.cuDeviceGetCount(&count);
        return answer(result, count);
    };
    commands["uuid"] = [](Program& p, const Words& w) { return uuid_of(p, device(w.at(0))); };
    commands["pci"] = [](Program& p, const Words& w) {
        char text[32] = "";
        const CUresult result = p.driver.cuDeviceGetPCIBusId(text, sizeof text, device(w.at(0)));
        return answer(result) + " " + text;
    };
    commands["total"] = [](Program& p, const Words& w) {
        size_t bytes = 0;
        const CUresult result = p.driver.cuDeviceTotalMem_v2(&bytes, device(w.at(0)));
        return answer(result, bytes);
    };
    commands["total32"] = [](Program& p, const Words& w) {
        unsigned bytes = 0;
        const CUresult result = p.driver.cuDeviceTotalMem(&bytes, device(w.at(0)));
        return answer(result, bytes);
    };
    // hidden DEVICE: the primary context, made by a way of the driver's own that no hook sees, and made current
    commands["hidden"] = [](Program& p, const Words& w) {
        const cuslice::fake::PrivateDriver* own = private_driver(p);
        CUcontext context = nullptr;
        const CUresult result = own ? own->retain_primary(&context, device(w.at(0))) : CUDA_ERROR_NOT_FOUND;
        if (result != CUDA_SUCCESS)
            return answer(result);
        p.contexts[w.at(0)] = context;
        return answer(make_current(p, context));
    };
    commands["hiddenrelease"] = [](Program& p, const Words& w) {
        return answer(private_driver(p)->release_primary(device(w.at(0))));
    };
    // hiddenload NAME BYTES: a module with one variable
    commands["hiddenload"] = [](Program& p, const Words& w) {
        return answer(private_driver(p)->load_module(&p.modules[w.at(0)], module_text(number(w.at(1))).c_str()));
    };
    // hiddenbegin STREAM: a capture in global mode
    commands["hiddenbegin"] = [](Program& p, const Words& w) {
        const CUresult result = private_driver(p)->begin_capture(p.streams.at(w.at(0)), CU_STREAM_CAPTURE_MODE_GLOBAL);
        if (result == CUDA_SUCCESS)
            capture_begins();
        return answer(result);
    };
    // retain DEVICE: the primary context, made current and known by the device's number
    commands["retain"] = [](Program& p, const Words& w) {
        CUcontext context = nullptr;
        const CUresult result = p.driver.cuDevicePrimaryCtxRetain(&context, device(w.at(0)));
        if (result != CUDA_SUCCESS)
            return answer(result);
        p.contexts[w.at(0)] = context;
        return answer(make_current(p, context));
    };
    commands["release"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuDevicePrimaryCtxRelease_v2(device(w.at(0))));
    };
    commands["reset"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuDevicePrimaryCtxReset_v2(device(w.at(0))));
    };
    // create NAME DEVICE: a context of the program's own, which becomes current
    commands["create"] = [](Program& p, const Words& w) {
        CUcontext context = nullptr;
        const CUresult result = p.driver.cuCtxCreate_v2(&context, 0, device(w.at(1)));
        if (result == CUDA_SUCCESS)
            p.current = p.contexts[w.at(0)] = context;
        return answer(result);
    };
    commands["destroy"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuCtxDestroy_v2(p.contexts.at(w.at(0))));
    };
    // green NAME DEVICE: on all of the device's multiprocessors; `current NAME` makes its context current
    commands["green"] = [](Program& p, const Words& w) {
        CUdevResource all{};
        CUdevResourceDesc resources = nullptr;
        CUresult result = p.driver.cuDeviceGetDevResource(device(w.at(1)), &all, CU_DEV_RESOURCE_TYPE_SM);
        if (result == CUDA_SUCCESS)
            result = p.driver.cuDevResourceGenerateDesc(&resources, &all, 1);
        CUgreenCtx green = nullptr;
        if (result == CUDA_SUCCESS)
            result = p.driver.cuGreenCtxCreate(&green, resources, device(w.at(1)), CU_GREEN_CTX_DEFAULT_STREAM);
        if (result != CUDA_SUCCESS)
            return answer(result);
        p.greens[w.at(0)] = green;
        return answer(p.driver.cuCtxFromGreenCtx(&p.contexts[w.at(0)], green));
    };
    commands["ungreen"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuGreenCtxDestroy(p.greens.at(w.at(0))));
    };
    commands["current"] = [](Program& p, const Words& w) {
        return answer(make_current(p, w.at(0) == "none" ? nullptr : p.contexts.at(w.at(0))));
    };
    commands["sync"] = [](Program& p, const Words&) { return answer(p.driver.cuCtxSynchronize()); };
    // module NAME BYTES: with a variable of that size
    commands["module"] = [](Program& p, const Words& w) {
        CUmodule module = nullptr;
        const CUresult result = p.driver.cuModuleLoadData(&module, module_text(number(w.at(1))).c_str());
        if (result == CUDA_SUCCESS)
            p.modules[w.at(0)] = module;
        return answer(result);
    };
    // kernels NAME COUNT: a module with so many, each launched once
    commands["kernels"] = [](Program& p, const Words& w) {
        CUmodule module = nullptr;
        CUresult result = p.driver.cuModuleLoadData(&module, kernels_text(number(w.at(1))).c_str());
        if (result == CUDA_SUCCESS)
            p.modules[w.at(0)] = module;
        for (size_t i = 0; result == CUDA_SUCCESS && i < number(w.at(1)); ++i) {
            CUfunction function = nullptr;
            result = p.driver.cuModuleGetFunction(&function, module, ("k" + std::to_string(i)).c_str());
            if (result == CUDA_SUCCESS)
                result = p.driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
        }
        return answer(result);
    };
    // localkernels NAME BYTES: a module with two kernels of so much local memory, of which the first is launched
    commands["localkernels"] = [](Program& p, const Words& w) {
        CUmodule& module = p.modules[w.at(0)];
        CUresult result = p.driver.cuModuleLoadData(&module, local_kernels_text(w.at(1)).c_str());
        CUfunction function = nullptr;
        if (result == CUDA_SUCCESS)
            result = p.driver.cuModuleGetFunction(&function, module, "first");
        if (result == CUDA_SUCCESS)
            result = p.driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
        return answer(result);
    };
    // lookup NAME KERNEL
    commands["lookup"] = [](Program& p, const Words& w) {
        CUfunction function = nullptr;
        return answer(p.driver.cuModuleGetFunction(&function, p.modules.at(w.at(0)), w.at(1).c_str()));
    };
    // heap [BYTES]: sets the heap's size for kernels; its size
    commands["heap"] = [](Program& p, const Words& w) {
        size_t size = 0;
        const CUresult result =
            w.empty() ? CUDA_SUCCESS : p.driver.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, number(w[0]));
        p.driver.cuCtxGetLimit(&size, CU_LIMIT_MALLOC_HEAP_SIZE);
        return answer(result, size);
    };
    // threadstack [BYTES]: sets each thread's stack for kernels; its size
    commands["threadstack"] = [](Program& p, const Words& w) {
        size_t size = 0;
        const CUresult result = w.empty() ? CUDA_SUCCESS : p.driver.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, number(w[0]));
        p.driver.cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE);
        return answer(result, size);
    };
    commands["unload"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuModuleUnload(p.modules.at(w.at(0))));
    };
}

}  // namespace guest
