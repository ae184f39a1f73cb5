// SPDX-License-Identifier: Apache-2.0
// Single attacks on the ledgers' folder, with whatever rights the process has. Each says what it did.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/preload/model/puppet.h"

namespace cuslice::tests::model {

/// Everything in the folder that belongs to a user.
std::vector<std::string> files_of(const std::string& folder, unsigned user);

/// Locks all or some of another user's file, in one of the ways that the kernel has. The lock stays as long as the
/// process, unless it is given up at once.
std::string lock_somewhere(const std::string& folder, uint64_t random, bool briefly = false);

/// An empty or senseless file, a FIFO, a folder, a socket or a link under this name. False: something is there.
bool put_something(const std::string& path, uint64_t random);
/// Only what is this user's.
bool remove_something(const std::string& path);

/// The names that a new ledger has while it is made, for the pids that the machine gives out next. How many.
unsigned squat_made(const std::string& path, uint64_t random);

/// Hundreds of names that look like ledgers, files in the making and presences.
std::string flood_folder(const std::string& folder, const std::string& uuid, uint64_t seed);

/// Overwrites something in this user's own ledger.
std::string forge_in(const std::string& path, const std::string& folder, std::mt19937_64& random);
/// Shortens, extends, removes or replaces this user's own ledger; `other` is a victim's.
std::string reshape_file(const std::string& path, const std::string& other, uint64_t random);

/// In a process of root's: takes a place in the ledger as a launcher does for the program that it becomes, and becomes
/// this program once more, which drops its rights: see dropped_program(). Returns only if that fails.
void start_dropped(const Puppet::Wish& wish, unsigned user, uint64_t seed);
/// The rest of the former: uses each descriptor that it has inherited. Says what succeeded, on descriptor 1, and stays.
int dropped_program(unsigned user, uint64_t seed);

}  // namespace cuslice::tests::model
