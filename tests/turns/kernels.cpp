// SPDX-License-Identifier: Apache-2.0
#include "tests/turns/kernels.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace cuslice::tests {

namespace {

[[noreturn]] void give_up(const char* what, int error) {
    std::fprintf(stderr, "kernels: %s: error %d\n", what, error);
    std::exit(1);
}

void* library() {
    static void* const opened = dlopen("libcuda.so.1", RTLD_NOW);
    if (!opened)
        give_up(dlerror(), 0);
    return opened;
}

template <typename Pointer>
void find(const char* symbol, Pointer& pointer) {
    pointer = reinterpret_cast<Pointer>(dlsym(library(), symbol));
    if (!pointer)
        give_up(symbol, CUDA_ERROR_NOT_FOUND);
}

}  // namespace

void must(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS)
        give_up(what, result);
}

LaunchingDriver::LaunchingDriver() {
    find("cuInit", init);
    find("cuDevicePrimaryCtxRetain", retain);
    find("cuCtxSetCurrent", set_current);
    find("cuModuleLoadData", load_module);
    find("cuModuleGetFunction", get_function);
    find("cuStreamCreate", create_stream);
    find("cuStreamSynchronize", synchronize_stream);
    find("cuStreamWaitEvent", wait_for_event);
    find("cuStreamBeginCapture_v2", begin_capture);
    find("cuStreamEndCapture", end_capture);
    find("cuEventCreate", create_event);
    find("cuEventRecord", record_event);
    find("cuEventSynchronize", synchronize_event);
    find("cuEventDestroy_v2", destroy_event);
    find("cuIpcGetEventHandle", export_event);
    find("cuIpcOpenEventHandle", import_event);
    find("cuLaunchKernel", launch);
    find("cuGraphInstantiateWithFlags", instantiate);
    find("cuGraphLaunch", launch_graph);
    find("cuGraphDestroy", destroy_graph);
    find("cuGraphExecDestroy", destroy_graph_exec);
    must(init(0), "cuInit");
}

KernelStream::KernelStream(const LaunchingDriver& driver, int gpu, const std::string& kernel) : driver_(driver) {
    must(driver_.retain(&context_, gpu), "cuDevicePrimaryCtxRetain");
    become_current();
    const std::string code =
        ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry " + kernel + "()\n{\nret;\n}\n";
    CUmodule module = nullptr;
    must(driver_.load_module(&module, code.c_str()), "cuModuleLoadData");
    must(driver_.get_function(&kernel_, module, kernel.c_str()), "cuModuleGetFunction");
    must(driver_.create_stream(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (CUevent& end : ends_)
        must(driver_.create_event(&end, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
}

// Once, so that a launch is nothing but a launch.
void KernelStream::become_current() {
    static thread_local CUcontext current = nullptr;
    if (current == context_)
        return;
    must(driver_.set_current(context_), "cuCtxSetCurrent");
    current = context_;
}

void KernelStream::launch(unsigned kernels) {
    become_current();
    for (unsigned i = 0; i < kernels; i++)
        must(driver_.launch(kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), "cuLaunchKernel");
}

CUgraph KernelStream::capture(unsigned kernels) {
    become_current();
    CUgraph graph = nullptr;
    must(driver_.begin_capture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    launch(kernels);
    must(driver_.end_capture(stream_, &graph), "cuStreamEndCapture");
    return graph;
}

CUgraphExec KernelStream::instantiate(unsigned kernels) {
    const CUgraph graph = capture(kernels);
    CUgraphExec made = nullptr;
    must(driver_.instantiate(&made, graph, 0), "cuGraphInstantiateWithFlags");
    must(driver_.destroy_graph(graph), "cuGraphDestroy");
    return made;
}

void KernelStream::launch_graph(unsigned kernels) {
    if (!graph_)
        graph_ = instantiate(kernels);
    become_current();
    must(driver_.launch_graph(graph_, stream_), "cuGraphLaunch");
}

void KernelStream::launch_new_graph(unsigned kernels) {
    const CUgraphExec made = instantiate(kernels);
    must(driver_.launch_graph(made, stream_), "cuGraphLaunch");
    must(driver_.destroy_graph_exec(made), "cuGraphExecDestroy");
}

void KernelStream::end_batch() {
    become_current();
    must(driver_.record_event(ends_[batches_ % 2], stream_), "cuEventRecord");
    batches_++;
    if (batches_ > 1)
        must(driver_.synchronize_event(ends_[batches_ % 2]), "cuEventSynchronize");
}

void KernelStream::finish() {
    become_current();
    must(driver_.synchronize_stream(stream_), "cuStreamSynchronize");
}

void KernelStream::export_event(const std::string& path) {
    become_current();
    if (!exported_)
        must(driver_.create_event(&exported_, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS), "cuEventCreate");
    must(driver_.record_event(exported_, stream_), "cuEventRecord");
    CUipcEventHandle handle;
    must(driver_.export_event(&handle, exported_), "cuIpcGetEventHandle");
    const std::string made = path + "." + std::to_string(getpid());
    const int file = open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool written = write(file, &handle, sizeof handle) == sizeof handle;
    close(file);
    if (!written || rename(made.c_str(), path.c_str()) != 0)
        give_up(path.c_str(), errno);
}

void KernelStream::wait_for_event_of(const std::string& path) {
    become_current();
    CUipcEventHandle handle;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool found = file >= 0 && read(file, &handle, sizeof handle) == sizeof handle;
    if (file >= 0)
        close(file);
    CUevent event = nullptr;
    // Its process may have ended.
    if (!found || driver_.import_event(&event, handle) != CUDA_SUCCESS)
        return;
    must(driver_.wait_for_event(stream_, event, 0), "cuStreamWaitEvent");
    must(driver_.destroy_event(event), "cuEventDestroy");
}

}  // namespace cuslice::tests
