// SPDX-License-Identifier: Apache-2.0
// A machine of a test's own, with the product installed: a root of its own in a mount namespace, three users, a folder
// of ledgers in memory, and a fake GPU that stands for a real one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/preload/machine.h"

namespace cuslice::tests {

/// Numbers of the users that its /etc/passwd has besides root.
constexpr unsigned kRoot = 0, kAlice = 60001, kBob = 60002, kCarol = 60003;

class Host {
  public:
    /// The installation lies in /opt/cuslice, and nothing of it is used yet.
    Host();

    /// False if this machine lets tests make none: a line says so, and the case is skipped.
    bool possible();
    /// False if this machine has no Python for every user; a line says so.
    bool has_python() const;

    /// The words that run a program there as a user, with the environment that the command gets.
    Words as(unsigned user, const Words& program) const;
    /// A shell's text, by a user who has nothing in his environment but PATH, HOME and the machine's variables.
    Outcome shell(unsigned user, const std::string& text) const;
    /// The same, of a text that has to end well.
    std::string done(unsigned user, const std::string& text) const;
    /// Variables for what a real GPU has of the machine, and a fake one has no other way to learn.
    Words machine(unsigned user) const;
    /// A program of a user's that answers lines.
    std::unique_ptr<Guest> start(unsigned user, const Words& program, const Words& more = {}) const;

    /// A path of the machine's, as this process has it. What lies in memory there isn't to be had so.
    std::string at(const std::string& name) const { return root_.path() + name; }
    /// All files that are the machine's own, with their contents.
    std::map<std::string, std::string> files() const;
    /// The bytes that the fake GPU has in use by all of a user's processes.
    uint64_t held_by(unsigned user) const;

    /// Programs there: one that opens the driver, one that is linked to it, and one in Python.
    static const Words kOpens, kLinked, kPython;

  private:
    void make_users() const;
    void make_programs() const;
    std::string mounts() const;

    Folder root_;
    std::unique_ptr<Guest> keeper_;  // of the namespace
};

/// A command of docs/administrators.md, without what is said of it behind a #. `begin` tells it from others.
std::string command_of_page(const std::string& begin);
/// A block of that page, by the language behind its fence and by what its first line begins with.
std::string block_of_page(const std::string& language, const std::string& begin);
/// A piece in backquotes there, by what it begins with.
std::string code_of_page(const std::string& begin);

}  // namespace cuslice::tests
