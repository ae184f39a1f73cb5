// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice {

// A place of the caller's that is written once the call is known to succeed. What the driver makes may have to be given
// back, as it doesn't fit or there is no memory to note it in: a call that is refused leaves the place as it was.
template <typename T>
class OutParameter {
  public:
    // Null if the caller has given none, which is the driver's to refuse.
    explicit OutParameter(T* into) : into_(into) {}
    OutParameter(const OutParameter&) = delete;
    OutParameter& operator=(const OutParameter&) = delete;

    // Where the driver puts it. Null if the caller has given none.
    T* place() { return into_ ? &made_ : nullptr; }
    const T& operator*() const { return made_; }
    void keep() const {
        if (into_)
            *into_ = made_;
    }

  private:
    T* into_;
    T made_{};
};

}  // namespace cuslice
