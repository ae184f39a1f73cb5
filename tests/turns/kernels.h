// SPDX-License-Identifier: Apache-2.0
// A stream of kernels on one GPU, in a program that finds libcuda.so.1 as any other does: the fake GPU's, or cuslice
// before it. For benchmarks and tests of shares of time.
#pragma once
#define __CUDA_API_VERSION_INTERNAL  // every form by its own name: no macro that turns one into another
#include <cuda.h>

#include <string>

namespace cuslice::tests {

/// The functions that are called.
struct LaunchingDriver {
    /// Opens the library and starts the driver. Ends the program where it can't.
    LaunchingDriver();

    decltype(&::cuInit) init;
    decltype(&::cuDevicePrimaryCtxRetain) retain;
    decltype(&::cuCtxSetCurrent) set_current;
    decltype(&::cuModuleLoadData) load_module;
    decltype(&::cuModuleGetFunction) get_function;
    decltype(&::cuStreamCreate) create_stream;
    decltype(&::cuStreamSynchronize) synchronize_stream;
    decltype(&::cuStreamWaitEvent) wait_for_event;
    decltype(&::cuStreamBeginCapture_v2) begin_capture;
    decltype(&::cuStreamEndCapture) end_capture;
    decltype(&::cuEventCreate) create_event;
    decltype(&::cuEventRecord) record_event;
    decltype(&::cuEventSynchronize) synchronize_event;
    decltype(&::cuEventDestroy_v2) destroy_event;
    decltype(&::cuIpcGetEventHandle) export_event;
    decltype(&::cuIpcOpenEventHandle) import_event;
    decltype(&::cuLaunchKernel) launch;
    decltype(&::cuGraphInstantiateWithFlags) instantiate;
    decltype(&::cuGraphLaunch) launch_graph;
    decltype(&::cuGraphDestroy) destroy_graph;
    decltype(&::cuGraphExecDestroy) destroy_graph_exec;
};

/// Ends the program unless `result` is success.
void must(CUresult result, const char* what);

/// One thread's.
class KernelStream {
  public:
    /// With the primary context of a GPU. `kernel`: its name, by which the fake GPU knows what it takes.
    KernelStream(const LaunchingDriver& driver, int gpu, const std::string& kernel);

    void launch(unsigned kernels);
    /// The same as one graph, which is captured before the first one of them.
    void launch_graph(unsigned kernels);
    /// A graph is captured, launched and destroyed.
    void launch_new_graph(unsigned kernels);
    /// Ends a batch, and waits until the one before it has run: so one batch is always queued.
    void end_batch();
    /// Waits for all.
    void finish();

    /// Writes a handle of an event behind what is queued to a file, for other processes.
    void export_event(const std::string& path);
    /// Later kernels wait for such an event, if the file is there.
    void wait_for_event_of(const std::string& path);

  private:
    void become_current();
    CUgraph capture(unsigned kernels);
    CUgraphExec instantiate(unsigned kernels);

    const LaunchingDriver& driver_;
    CUcontext context_ = nullptr;
    CUfunction kernel_ = nullptr;
    CUstream stream_ = nullptr;
    CUevent ends_[2] = {}, exported_ = nullptr;
    CUgraphExec graph_ = nullptr;
    unsigned batches_ = 0;
};

}  // namespace cuslice::tests
