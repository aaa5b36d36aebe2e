// Ends the process with a message when it runs out of memory.
#pragma once

namespace dtrain {

/// Installs the handler. If a large allocation fails, std::bad_alloc propagates as usual. If an exception
/// cannot propagate (a destructor, a library's thread), the process prints a message and exits with code 1
/// instead of dying by a signal. Any other termination still aborts.
///
/// If even a small allocation fails, the process exits in the same way at once: it could do nothing useful,
/// and the libraries that dtrain uses would crash or exit silently. Saved files are complete on disk. For
/// this, last_resort.cpp replaces malloc, not only operator new. Without the replacement, of 400 requests
/// that tests/fuzz/fuzz_malloc.py made fail, 66 ended the process by a signal or without a message. If only
/// operator new is replaced (std::set_new_handler could do no more), 22 of 1000 still do, because C libraries
/// call malloc themselves and cannot handle its failure:
/// - oneDNN 2.6 uses null pointers in dnnl_primitive_desc_iterator_create and dnnl_sgemm (SIGSEGV);
/// - libhdf5 1.10 does so in H5_init_library (SIGSEGV), and the process ends with exit code 255 and without a
///   message if a request within H5Acreate2 fails.
/// Counting the free memory before a run cannot prevent this: other processes take memory, too.
void install_last_resort();

}  // namespace dtrain
