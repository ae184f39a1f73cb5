// SPDX-License-Identifier: Apache-2.0
// A machine whose users are limited by a rule, and which the stub reaches: a user of the tests' own, and her GPU.
#pragma once

#include "tests/preload/machine.h"
#include "tests/stub/system.h"

namespace cuslice::tests {

/// A machine on which all that the user Alice runs has 1 GiB of a fake GPU of 2 GiB together.
class Ruled : public System {
  public:
    /// `share`: what the rule says of it, "user" or "cgroup"; without a rule on this machine, empty.
    explicit Ruled(const std::string& share);

    /// False if this machine lets tests make none: a line says so, and the case is skipped.
    bool possible() const;
    /// False if this machine lacks a program that a text of the shell needs.
    bool has(const std::string& text) const;
    /// The command that runs a text of the shell as root. In the text, {alice} runs what follows as Alice, whose
    /// number is {user}; {probe} runs two programs that ask what memory there is (through what follows, if anything
    /// does); {way} is way.c, and {static} the same without a loader; {clears} is clears.py, for {python}; {machine}
    /// are the variables of the fake GPU, {at} is a folder of hers, {fake} that of the driver, {guest} a program that
    /// opens it, {library} libcuslice.so, and {loader} the C library's loader.
    Words shell(const std::string& text) const;
    /// A guest of Alice's that opens the driver.
    Words guest() const;
    /// The text with what stands in braces filled in.
    std::string filled(std::string text) const;

    /// Writes the questions that the probes are to ask, as lines for a guest.
    void write_questions(const std::string& lines) const;
    /// The answers of the program that opens the driver, and of the one that is linked to it. Waits for them, as
    /// whoever started the probes may be gone before. Empty: it did not come to an end.
    struct Answers {
        Words opened, linked;
        std::string errors;
    };
    Answers take_answers() const;

    static constexpr unsigned kAlice = 60001;
    const std::string& books() const { return books_.path(); }

  private:
    std::string machine() const;

    Folder books_;
};

}  // namespace cuslice::tests
