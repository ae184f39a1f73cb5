#pragma once

namespace cuslice {

// What the driver's cuGetProcAddress has handed out, as the function that its library exports. They are the same but
// on WSL2, where libcuda.so.1 leads on to a second library and may hand out that one's functions. An address that
// belongs to none of the functions that we know comes back as it is. After the driver was loaded; thread-safe.
void* exported_form(void* handed_out);

}  // namespace cuslice
