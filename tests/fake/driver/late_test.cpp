// SPDX-License-Identifier: Apache-2.0
// Late streams: work is done when somebody waits for it and not before, and then in the order that CUDA promises.

#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

namespace {

const Environment late = {{"CUSLICE_FAKE", "2xt4"}, {"CUSLICE_FAKE_STREAMS", "late"}};

CUstream new_stream(const Report& report, unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_EQUAL(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    return stream;
}

CUevent new_event(const Report& report) {
    CUevent event = nullptr;
    EXPECT_EQUAL(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return event;
}

/// One word of a GPU's, and a look at it that no stream but the legacy one and blocking ones are in order with.
struct Word {
    explicit Word(const Report& report) {
        EXPECT_EQUAL(cuMemAlloc(&at, 4), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemsetD32(at, 0, 1), CUDA_SUCCESS);
        EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    unsigned now() const {
        unsigned value = ~0U;
        return cuMemcpyDtoH(&value, at, 4) == CUDA_SUCCESS ? value : ~0U;
    }
    CUresult set(unsigned value, CUstream stream) const { return cuMemsetD32Async(at, value, 1, stream); }
    CUdeviceptr at = 0;
};

}  // namespace

TEST_CASE("late: work waits until its stream, its context or an event is waited for") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const CUstream stream = new_stream(report);
              const CUevent event = new_event(report);
              const Word word(report);
              EXPECT_EQUAL(word.set(1, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 0U);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 1U);
              EXPECT_EQUAL(word.set(2, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 1U);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 2U);
              EXPECT_EQUAL(word.set(3, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(event, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(word.set(4, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 3U);
          }) == "");
}

TEST_CASE("late: fills and copies between device memory don't wait, whatever their name") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const Word from(report), to(report);
              for (int i = 0; i < 100; i++) {  // more than one question lets get on
                  EXPECT_EQUAL(cuMemsetD32(from.at, 5, 1), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemcpyDtoD(to.at, from.at, 4), CUDA_SUCCESS);
              }
              EXPECT_EQUAL(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
              EXPECT_EQUAL(to.now(), 5U);  // in order with the legacy stream
          }) == "");
}

TEST_CASE("late: a stream that waits for an event takes along what is before it, and no more") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const CUstream first = new_stream(report), second = new_stream(report);
              const CUevent event = new_event(report);
              const Word before(report), after(report), copy(report);
              EXPECT_EQUAL(before.set(1, first), CUDA_SUCCESS);
              EXPECT_EQUAL(cuEventRecord(event, first), CUDA_SUCCESS);
              EXPECT_EQUAL(after.set(1, first), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoDAsync(copy.at, before.at, 4, second), CUDA_SUCCESS);
              EXPECT_EQUAL(before.now(), 0U);
              EXPECT_EQUAL(cuStreamSynchronize(second), CUDA_SUCCESS);
              EXPECT_EQUAL(before.now(), 1U);
              EXPECT_EQUAL(copy.now(), 1U);
              EXPECT_EQUAL(after.now(), 0U);
          }) == "");
}

TEST_CASE("late: the legacy stream and blocking ones keep their order, and a peer's copy its own") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const CUstream blocking = new_stream(report, CU_STREAM_DEFAULT);
              const Word word(report), copy(report);
              EXPECT_EQUAL(word.set(7, blocking), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoDAsync(copy.at, word.at, 4, CU_STREAM_LEGACY), CUDA_SUCCESS);
              EXPECT_EQUAL(word.set(8, blocking), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(blocking), CUDA_SUCCESS);
              EXPECT_EQUAL(copy.now(), 7U);
              EXPECT_EQUAL(word.now(), 8U);
              EXPECT_EQUAL(word.set(9, blocking), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 9U);
          }) == "");
}

TEST_CASE("late: who polls often enough is told yes") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const CUstream streams[] = {new_stream(report), new_stream(report, CU_STREAM_DEFAULT), nullptr};
              const CUevent event = new_event(report);
              const Word word(report);
              for (const CUstream stream : streams) {
                  for (unsigned i = 0; i < 200; i++)
                      EXPECT_EQUAL(word.set(i, stream), CUDA_SUCCESS);
                  int asked = 0;
                  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
                      asked++;
                  EXPECT(asked > 3);
                  for (unsigned i = 0; i < 200; i++)
                      EXPECT_EQUAL(word.set(1000 + i, stream), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuEventRecord(event, stream), CUDA_SUCCESS);
                  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
                      asked++;
                  EXPECT(asked > 6);
                  EXPECT_EQUAL(word.now(), 1199U);
              }
          }) == "");
}

TEST_CASE("late: freeing waits for everything, and more than a GPU can queue gets on") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const CUstream stream = new_stream(report);
              const Word word(report), other(report);
              EXPECT_EQUAL(word.set(1, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemFree(other.at), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 1U);
              for (unsigned i = 2; i < 3000; i++)
                  EXPECT_EQUAL(word.set(i, stream), CUDA_SUCCESS);
              const unsigned now = word.now();
              EXPECT(now > 1900 && now < 2990);
          }) == "");
}

TEST_CASE("late: what a stream that has ended was given is the context's to wait for") {
    CHECK(in_child(late, [](const Report& report) {
              const CUcontext context = use_device(report);
              const CUevent event = new_event(report);
              const Word word(report);
              for (unsigned i = 1; i < 4; i++) {
                  const CUstream stream = new_stream(report, i == 3 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
                  EXPECT_EQUAL(word.set(i, stream), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuStreamDestroy(stream), CUDA_SUCCESS);
                  if (i < 3)
                      EXPECT_EQUAL(word.now(), i - 1);
                  if (i == 1)
                      EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
                  if (i == 2)
                      EXPECT_EQUAL(cuCtxRecordEvent(context, event), CUDA_SUCCESS);
                  if (i == 2)
                      EXPECT_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
                  EXPECT_EQUAL(word.now(), i);
              }
          }) == "");
}

TEST_CASE("late: pageable memory has been read when the copy returns, page-locked memory hasn't") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const CUstream stream = new_stream(report);
              const Word first(report), second(report);
              void* locked = nullptr;
              EXPECT_EQUAL(cuMemAllocHost(&locked, 8), CUDA_SUCCESS);
              auto* words = static_cast<unsigned*>(locked);
              unsigned pageable = words[0] = 1;
              EXPECT_EQUAL(cuMemcpyHtoDAsync(first.at, &pageable, 4, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyHtoDAsync(second.at, words, 4, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(first.now(), 0U);
              pageable = words[0] = 2;
              words[1] = 0;
              EXPECT_EQUAL(cuMemcpyDtoHAsync(&words[1], second.at, 4, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(words[1], 0U);
              EXPECT_EQUAL(cuMemcpyDtoHAsync(&pageable, first.at, 4, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(pageable, 1U);
              EXPECT_EQUAL(words[1], 2U);
          }) == "");
}

TEST_CASE("late: a host function runs in whoever waits, and holds up nobody who asks", "[at once]") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const CUstream stream = new_stream(report), other = new_stream(report);
              static std::thread::id where;
              static std::atomic<bool> open{false};
              const Word word(report);
              EXPECT_EQUAL(cuLaunchHostFunc(
                               stream, [](void*) { where = std::this_thread::get_id(); }, nullptr),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT(where == std::this_thread::get_id());
              const auto hold = [](void*) {
                  while (!open)
                      std::this_thread::yield();
              };
              EXPECT_EQUAL(cuLaunchHostFunc(stream, hold, nullptr), CUDA_SUCCESS);
              EXPECT_EQUAL(word.set(1, stream), CUDA_SUCCESS);
              for (int i = 0; i < 100; i++)
                  EXPECT_EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
              // More than can be queued, behind it as well: it is passed over.
              for (unsigned i = 0; i < 3000; i++)
                  EXPECT_EQUAL(word.set(i, i % 2 ? stream : other), CUDA_SUCCESS);
              open = true;
              while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
                  std::this_thread::yield();
          }) == "");
}

TEST_CASE("late: captured work runs when its graph's launch is waited for") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const CUstream stream = new_stream(report);
              const Word word(report);
              CUgraph graph = nullptr;
              CUgraphExec exec = nullptr;
              EXPECT_EQUAL(word.set(1, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
              EXPECT_EQUAL(word.set(2, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
              EXPECT_EQUAL(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 0U);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 1U);
              EXPECT_EQUAL(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 1U);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 2U);
          }) == "");
}

TEST_CASE("late: threads that wait for each other's streams see all of their work") {
    CHECK(in_child(late, [](const Report& report) {
              const CUcontext context = use_device(report);
              std::vector<CUstream> streams;
              std::vector<Word> words;
              for (int i = 0; i < 4; i++) {
                  streams.push_back(new_stream(report));
                  words.emplace_back(report);
              }
              std::vector<std::thread> threads;
              for (unsigned t = 0; t < 4; t++)
                  threads.emplace_back([&, t] {
                      EXPECT_EQUAL(cuCtxSetCurrent(context), CUDA_SUCCESS);
                      const CUevent event = new_event(report);
                      for (unsigned i = 1; i < 400; i++) {
                          EXPECT_EQUAL(words[t].set(i, streams[t]), CUDA_SUCCESS);
                          EXPECT_EQUAL(cuEventRecord(event, streams[t]), CUDA_SUCCESS);
                          EXPECT_EQUAL(cuStreamWaitEvent(streams[(t + 1) % 4], event, 0), CUDA_SUCCESS);
                          if (i % 7 == t)
                              EXPECT_EQUAL(cuStreamSynchronize(streams[(t + i) % 4]), CUDA_SUCCESS);
                          if (i % 5 == t)
                              EXPECT_EQUAL(cuEventSynchronize(event), CUDA_SUCCESS);
                          if (i % 50 == t)
                              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
                      }
                  });
              for (std::thread& thread : threads)
                  thread.join();
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              for (const Word& word : words)
                  EXPECT_EQUAL(word.now(), 399U);
          }) == "");
}

TEST_CASE("late: one thread gets the same order from the same seed, another from another") {
    const auto order_of = [](const std::string& streams) {
        std::string said;
        const Environment with = {{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_STREAMS", streams}};
        const std::string failed = in_child(
            with,
            [](const Report& report) {
                use_device(report);
                const Word word(report);
                std::vector<CUstream> all;
                for (int i = 0; i < 5; i++)
                    all.push_back(new_stream(report));
                std::string seen;
                for (unsigned i = 0; i < 300; i++) {
                    EXPECT_EQUAL(word.set(i, all[i % 5]), CUDA_SUCCESS);
                    if (i % 10 == 0)
                        cuStreamQuery(all[i / 10 % 5]);
                    seen += std::to_string(word.now()) + " ";
                }
                EXPECT(write(STDERR_FILENO, seen.data(), seen.size()) > 0);
            },
            &said);
        CHECK(failed == "");
        return said;
    };
    const std::string once = order_of("late:1");
    CHECK(once == order_of("late:1"));
    CHECK(once != order_of("late:2"));
    CHECK(order_of("late") == order_of("late:0"));
}

namespace {

/// One mapped allocation of 2 MiB on GPU 0.
struct Mapped {
    explicit Mapped(const Report& report) {
        CUmemAllocationProp prop{};
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        CUmemGenericAllocationHandle handle = 0;
        EXPECT_EQUAL(cuMemAddressReserve(&at, 2 * MiB, 0, 0, 0), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemCreate(&handle, 2 * MiB, &prop, 0), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemMap(at, 2 * MiB, 0, handle, 0), CUDA_SUCCESS);
        EXPECT_EQUAL(cuMemRelease(handle), CUDA_SUCCESS);
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        EXPECT_EQUAL(cuMemSetAccess(at, 2 * MiB, &access, 1), CUDA_SUCCESS);
    }
    CUdeviceptr at = 0;
};

}  // namespace

TEST_CASE("late: unmapping waits for nothing, and work that finds its addresses unmapped ends the context") {
    for (const bool copy : {false, true}) {
        CHECK(in_child(late, [copy](const Report& report) {
                  const CUcontext context = use_device(report);
                  const CUstream stream = new_stream(report);
                  const Word word(report);
                  const Mapped mapped(report);
                  CUdeviceptr other = 0;
                  EXPECT_EQUAL(word.set(1, stream), CUDA_SUCCESS);
                  if (copy) {
                      EXPECT_EQUAL(cuMemcpyDtoDAsync(word.at, mapped.at, 4, stream), CUDA_SUCCESS);
                  } else {
                      EXPECT_EQUAL(cuMemsetD8Async(mapped.at, 1, 2 * MiB, stream), CUDA_SUCCESS);
                  }
                  EXPECT_EQUAL(cuMemUnmap(mapped.at, 2 * MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAddressFree(mapped.at, 2 * MiB), CUDA_SUCCESS);
                  EXPECT_EQUAL(word.now(), 0U);  // nothing has been done yet
                  EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
                  // As after a kernel's illegal address, nothing but the context's end is left.
                  EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
                  EXPECT_EQUAL(cuMemAlloc(&other, 512), CUDA_ERROR_ILLEGAL_ADDRESS);
                  EXPECT_EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
                  CUcontext second = nullptr;
                  EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuCtxSetCurrent(second), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAlloc(&other, 512), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuDevicePrimaryCtxRetain(&second, 0), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuCtxSetCurrent(context), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuMemAlloc(&other, 512), CUDA_SUCCESS);
              }) == "");
    }
}

TEST_CASE("late: host memory that runs out is told to whoever waits, once") {
    const Environment small = {{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_STREAMS", "late"}, {"CUSLICE_FAKE_HOST", "8MiB"}};
    CHECK(in_child(small, [](const Report& report) {
              use_device(report);
              const CUstream stream = new_stream(report);
              CUdeviceptr managed = 0;
              EXPECT_EQUAL(cuMemAllocManaged(&managed, 16 * MiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemsetD8Async(managed, 1, 16 * MiB, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_OUT_OF_MEMORY);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
          }) == "");
}

TEST_CASE("late: work is done if its stream is waited for before its addresses are unmapped") {
    CHECK(in_child(late, [](const Report& report) {
              use_device(report);
              const CUstream stream = new_stream(report);
              const Word word(report);
              const Mapped mapped(report);
              EXPECT_EQUAL(cuMemsetD32Async(mapped.at, 7, 1, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemcpyDtoDAsync(word.at, mapped.at, 4, stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuStreamSynchronize(stream), CUDA_SUCCESS);
              EXPECT_EQUAL(cuMemUnmap(mapped.at, 2 * MiB), CUDA_SUCCESS);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
              EXPECT_EQUAL(word.now(), 7U);
          }) == "");
}

TEST_CASE("late: any other word for the streams is refused by name") {
    for (const char* wrong : {"early", "late:", "late:x", "late:-1", "later"}) {
        std::string said;
        const Environment with = {{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_STREAMS", wrong}};
        CHECK(in_child(
                  with, [](const Report& report) { EXPECT_EQUAL(cuInit(0), CUDA_ERROR_SYSTEM_NOT_READY); }, &said) ==
              "");
        CHECK(said == "cuslice fake GPU: CUSLICE_FAKE_STREAMS: '" + std::string(wrong) +
                          "' is neither late nor late:SEED, with a number, such as late:7\n");
    }
}
