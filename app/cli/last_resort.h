// Ends the process with a message when it runs out of memory.
#pragma once

namespace dtrain {

/// Installs a terminate handler. If a large allocation fails, std::bad_alloc is thrown as usual. If this
/// exception cannot be caught (for example in a destructor, or in a thread of a library), the process prints
/// a message and exits with code 1 instead of aborting. Any other call of std::terminate() still aborts.
///
/// If even a small allocation fails, the process exits at once in the same way. It could not continue anyway,
/// and the libraries that dtrain uses would crash or exit without a message. Files that were saved before are
/// complete on disk. To detect small allocations that fail, last_resort.cpp replaces malloc, not only
/// operator new. tests/fuzz/fuzz_malloc.py showed that this is necessary: without the replacement, the
/// process died by a signal or without a message for 66 of 400 failed allocations. With only operator new
/// replaced (std::set_new_handler has the same effect), this still happened for 22 of 1000 failed
/// allocations, because C libraries call malloc themselves and cannot handle its failure:
/// - oneDNN 2.6 uses null pointers in dnnl_primitive_desc_iterator_create and dnnl_sgemm (SIGSEGV);
/// - libhdf5 1.10 uses a null pointer in H5_init_library (SIGSEGV). If an allocation within H5Acreate2 fails,
///   the process ends with exit code 255 and without a message.
/// Checking the free memory before a run cannot prevent these failures, because other processes may allocate
/// memory during the run.
void install_last_resort();

}  // namespace dtrain
