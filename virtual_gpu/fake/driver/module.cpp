#include "virtual_gpu/fake/driver/context.h"
namespace cuslice::fake {
void end_modules(Context&);
void end_modules(Context&) {}
}  // namespace cuslice::fake
