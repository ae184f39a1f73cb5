// SPDX-License-Identifier: Apache-2.0
// A machine whose /etc is a test's own: programs of this machine, in a mount namespace in which /etc/ld.so.preload
// names the stub.
#pragma once

#include <string>

#include "tests/preload/guest.h"

namespace cuslice::tests {

class System {
  public:
    /// With the stub and, beside it, the link to the built library.
    System();

    /// The command that runs a program on it, in the environment that the command gets.
    Words command(const Words& program) const;
    /// False if this machine lets tests make no such namespace: a line says so, and the case is skipped.
    bool possible() const;

    std::string stub() const { return at("system/libcuslice-preload.so"); }
    std::string library() const { return at("system/library/libcuslice.so"); }
    /// Exchanges the library for this one, or for a text of that many bytes.
    void put_library(const std::string& file) const;
    void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }
    std::string at(const std::string& name) const { return folder_.path() + "/" + name; }

  private:
    Folder folder_;
};

}  // namespace cuslice::tests
