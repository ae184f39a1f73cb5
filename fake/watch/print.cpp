// SPDX-License-Identifier: Apache-2.0
#include "fake/watch/print.h"

#include <cinttypes>
#include <cstdio>

#include "fake/units.h"
#include "fake/watch/vocabulary.h"

namespace cuslice::fake {
namespace {

double mib(uint64_t bytes) { return static_cast<double>(bytes) / kMiB; }

double milliseconds(const BusyTimes& busy, Engine engine) {
    return static_cast<double>(busy[static_cast<size_t>(engine)]) / 1e6;
}

const char* name_of(Engine engine) {
    switch (engine) {
        case Engine::compute:
            return "compute";
        case Engine::copy_in:
            return "copy_in";
        case Engine::copy_out:
            return "copy_out";
        default:
            return "none";
    }
}

/// Three figures in a form of both tables.
void print_busy(const char* form, const BusyTimes& busy) {
    std::printf(form, milliseconds(busy, Engine::compute), milliseconds(busy, Engine::copy_in),
                milliseconds(busy, Engine::copy_out));
}

void print_object(const Row& row) {
    std::printf("\n  {\"gpu\": %d, \"uuid\": \"%s\", \"name\": %s, \"capacity\": %" PRIu64
                ", \"pid\": %d, \"live\": %s, \"peak\": %" PRIu64 ", \"used\": %" PRIu64 ", \"unlisted\": %" PRIu64
                ", \"context\": %" PRIu64 ", \"modules\": %" PRIu64 ", \"contexts\": %u",
                row.index, row.uuid.c_str(), quoted(row.name).c_str(), row.capacity, row.holder.pid,
                row.holder.live ? "true" : "false", row.holder.peak, row.holder.used, row.holder.unlisted,
                row.holder.context_bytes, row.holder.module_bytes, row.holder.contexts);
    if (row.busy)
        print_busy(", \"compute_ms\": %.3f, \"copy_in_ms\": %.3f, \"copy_out_ms\": %.3f", *row.busy);
    std::printf("}");
}

}  // namespace

void print_lines(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        std::printf("GPU %d %s (%.0f MiB): pid %d peak %.2f MiB, %s %.2f MiB, contexts %.2f MiB, modules %.2f MiB",
                    row.index, row.name.c_str(), mib(row.capacity), row.holder.pid, mib(row.holder.peak),
                    row.holder.live ? "now" : "at exit", mib(row.holder.used), mib(row.holder.context_bytes),
                    mib(row.holder.module_bytes));
        if (row.holder.unlisted != 0)
            std::printf(", unlisted %.2f MiB", mib(row.holder.unlisted));
        if (row.busy)
            print_busy(", compute %.2f ms, copies in %.2f ms, out %.2f ms", *row.busy);
        std::printf("\n");
    }
}

void print_json(const std::vector<Row>& rows) {
    std::printf("[");
    const char* between = "";
    for (const Row& row : rows) {
        std::printf("%s", between);
        print_object(row);
        between = ",";
    }
    std::printf("%s]\n", rows.empty() ? "" : "\n");
}

void print_turns(const std::vector<IndexedTurn>& turns) {
    std::printf("gpu,pid,engine,begin,end\n");
    for (const auto& [index, turn] : turns)
        std::printf("%d,%d,%s,%" PRIu64 ",%" PRIu64 "\n", index, turn.pid, name_of(turn.engine), turn.begin, turn.end);
}

}  // namespace cuslice::fake
