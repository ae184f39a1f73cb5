// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice {

// Every lock's place among the others: a thread that has one takes another only of a later rank, and a fork takes them
// in this order. Of one rank a thread has one lock at a time; but whoever moves a member takes all of its stripes, in
// the order of their addresses. Beside each rank stands why it comes before others.
enum class LockRank : uint8_t {
    growing,           // an allocator takes segments, for which the GPU makes room in every way that it has
    lifetimes,         // virtual contexts begin and end, and what was made in them with them
    virtual_pools,     // a part's default pool is made, and its handle noted
    recording,         // the recording's file is made, with its first row
    record_numbers,    // what has numbers in a recording is written there
    trace_file,        // it is opened again, and mapped further: nothing is taken under it
    turns,             // the lease is opened and joined
    lease,             // a step of the lease is made, and the kernel asked about others: nothing is taken under it
    joining,           // a GPU's accounts are joined in its ledger
    ledger,            // members move, stripe by stripe
    process,           // settings, driver and GPUs are opened
    watchers,          // a GPU's is found: nothing is taken under it
    caches,            // a cache is opened, or closed and forgotten everywhere
    block_attributes,  // a block is looked up in its allocator
    thread_caches,     // what a thread kept is deferred, or goes back to the segments
    deferred_frees,    // so does what was deferred; fences are dropped
    segment_heap,      // tables grow
    ended_statistics,  // from here to `graph_needs` nothing is taken under them but memory for tables
    queued_work,
    captures,
    fences,
    visits,
    ipc_blocks,
    virtual_contexts,
    peer_access,
    handles,
    contexts,
    physical_memory,
    graph_needs,
    pools,             // what a pool keeps is charged to accounts
    driver_footprint,  // so is what the driver takes for itself
    stripe,            // a member's account is charged: nothing is taken under it
    places,            // all words of allocations are gone through
    table,             // a shard of allocations grows
    cancellations,     // threads' records are made
    table_memory,      // a chunk is cut: nothing is taken under it
    thread_key,        // the key is made: nothing is taken under it
    kCount,
    enlisting = kCount,  // the list of all the others: a fork takes it last
};

// True for locks that are held over calls of the driver, of NVML's or of the kernel's.
constexpr bool is_held_over_calls(LockRank rank) {
    return rank <= LockRank::ledger || rank == LockRank::driver_footprint;
}

// True if a fork waits for the holder of such a lock, so that the data behind it is whole in the child. False for
// locks that are held over calls of the driver, as a thread may be in there until the forking one does something, and
// for locks held over files, which others may have locked. In the child these are free, and the data behind them is
// forgotten there, or makes sense as it is. Stripes guard data in a ledger, which is the parent's.
constexpr bool fork_waits_for(LockRank rank) { return rank > LockRank::ledger && rank != LockRank::stripe; }

}  // namespace cuslice
