// The table of MPI functions that a shim exports. A shim is a small shared library that is compiled against
// the mpi.h of one MPI implementation, because handles and constants differ between implementations. The
// program itself is not linked with an MPI library. It opens the shim that fits the libmpi of the machine
// (processes/mpi_library.h).
#pragma once

#include <cstdint>

namespace dtrain {

/// The value of MpiTable::table_version in this version of the program.
constexpr int kMpiTableVersion = 1;

/// The bytes of an MPI_Request, which is an int or a pointer.
struct MpiRequest {
  uint64_t bits;
};

/// The MPI functions that dtrain calls. Every function returns 0 (MPI_SUCCESS), or an error code for
/// error_text(). All messages are MPI_BYTE in MPI_COMM_WORLD.
struct MpiTable {
  int table_version;
  /// Calls MPI_Init_thread with MPI_THREAD_SERIALIZED, and stores in `enough` whether MPI provides this
  /// thread level. After this call, errors of MPI functions are returned (MPI_ERRORS_RETURN).
  int (*initialize)(bool* enough);
  int (*world)(int* rank, int* size);
  /// Stores the rank of this process among the processes that share its memory (MPI_COMM_TYPE_SHARED), and
  /// the number of these processes.
  int (*node)(int* rank, int* size);
  /// `bytes` is at most 2^30.
  int (*isend)(const void* data, int bytes, int to, int tag, MpiRequest* request);
  int (*irecv)(void* data, int bytes, int from, int tag, MpiRequest* request);
  int (*test)(MpiRequest* request, bool* done);
  int (*barrier)();
  int (*broadcast)(void* data, int bytes, int root);
  int (*abort)(int exit_code);
  int (*finalize)();
  /// Writes the description of an error code, truncated to `size` bytes including the final 0.
  void (*error_text)(int error, char* text, int size);
};

}  // namespace dtrain

/// The only symbol that the program looks up in a shim.
extern "C" __attribute__((visibility("default"))) const dtrain::MpiTable* dtrain_mpi();
