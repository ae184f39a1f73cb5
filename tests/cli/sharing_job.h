// SPDX-License-Identifier: Apache-2.0
// A job with a share of a GPU's time, in the lease of a test's own folder, as long as the object lives.
#pragma once

#include <memory>
#include <string>

#include "policy/lease/job_id.h"
#include "policy/lease/process_lease.h"
#include "tests/catch.h"

namespace cuslice::tests {

class SharingJob {
  public:
    SharingJob(const std::string& folder, const std::string& name, const std::string& gpu, uint32_t weight,
               uint32_t cap = lease::kWhole) {
        REQUIRE(process_->open(folder.c_str(), {}, nullptr));
        lease::Lease& own = process_->lease();
        REQUIRE(own.join(lease::job_id(name), {own.number_of_gpu(gpu.c_str()), weight, cap}));
    }
    ~SharingJob() { process_->close(); }
    SharingJob(const SharingJob&) = delete;
    SharingJob& operator=(const SharingJob&) = delete;

    lease::Lease& lease() { return process_->lease(); }

  private:
    // Too large for a stack under a sanitizer.
    std::unique_ptr<lease::ProcessLease> process_ = std::make_unique<lease::ProcessLease>();
};

}  // namespace cuslice::tests
