// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and fills as the entries ask for them: checked, then run in a stream's order.

#include <functional>

#include "fake/driver/resolve.h"
#include "fake/driver/stream.h"

namespace cuslice::fake {

/// Location of a copy's end, as the called function declares it.
enum class Side { Device, Host, Any };

struct End {
    Side side;
    Address address;
    int gpu;  // that reaches for it: the current context's, or the one that a copy between peers names
};
inline End device_end(Address address, int gpu = accessing_gpu()) { return {Side::Device, address, gpu}; }
inline End host_end(const void* pointer) { return {Side::Host, reinterpret_cast<Address>(pointer), -1}; }
inline End any_end(Address address) { return {Side::Any, address, accessing_gpu()}; }

/// Where and how a transfer runs: in which stream, and whether the call returns when it is done.
struct Order {
    CUstream stream;
    DefaultStream form;
    bool wait;
};
/// Order of a function without a stream, which returns when the transfer is done, and of one with a stream.
inline Order order_of(DefaultStream form) { return {nullptr, form, true}; }
inline Order order_of(CUstream stream, DefaultStream form) { return {stream, form, false}; }

CUresult resolve_end(const End& end, size_t size, Access access, Extents& extents);

CUresult copy_linear(const End& to, const End& from, size_t bytes, const Order& order);

/// `height` rows of `width` elements of 1, 2 or 4 bytes; the pitch is in bytes.
struct Fill {
    Address to;
    size_t pitch;
    uint32_t value;
    unsigned element;
    size_t width, height;
};
CUresult fill_rows(const Fill& fill, const Order& order);

/// Checked fill: its task, and the rows that it writes. A fault goes to `context`; `gpu` accesses the memory.
struct CheckedFill {
    Task task;
    Extents rows;  // none if there is nothing to fill
};
CUresult check_fill(const Fill& fill, CUcontext context, int gpu, CheckedFill& out);

/// True if a transfer between these extents returns only when it is done: as its function says, or, if work is late,
/// as "API synchronization behavior" documents.
bool returns_when_done(const Order& order, const Extents& to, const Extents& from);

/// A copy between resolved extents, which fails in the current context.
Task copy_task(Extents to, Extents from);
/// That or another task as work: of `rows` rows, of which these are one.
NodeWork copy_work(Task task, const Extents& to, const Extents& from, size_t rows = 1);

/// Runs a checked transfer. A capture keeps what `describe` says of it, if anything does.
CUresult run_transfer(NodeWork work, const Order& order, const std::function<CUgraphNodeParams()>& describe = nullptr);

}  // namespace cuslice::fake
