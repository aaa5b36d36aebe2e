// This file is compiled once for each MPI whose header is found (third_party/mpi.cmake), and is not part of
// the program. The resulting shim is not linked with libmpi, because the file name of libmpi differs between
// distributions (libmpi.so.12, Debian's libmpich.so.12). Instead, the program opens libmpi with RTLD_GLOBAL
// before it opens the shim.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include "processes/shim/mpi_shim.h"

#include <cstring>
#include DTRAIN_MPI_HEADER  // <mpi.h>, or <mpi_abi.h>

namespace dtrain {

namespace {

static_assert(sizeof(MPI_Request) <= sizeof(MpiRequest));

MpiRequest to_bits(MPI_Request request) {
  MpiRequest bits{0};
  std::memcpy(&bits, &request, sizeof request);
  return bits;
}

MPI_Request from_bits(const MpiRequest& bits) {
  MPI_Request request;
  std::memcpy(&request, &bits, sizeof request);
  return request;
}

int initialize(bool* enough) {
  int provided = 0;
  const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (error != MPI_SUCCESS) return error;
  // The MPI standard guarantees the order of the values of the thread levels, but not the values themselves.
  *enough = provided >= MPI_THREAD_SERIALIZED;
  const int world_error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int self_error = MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  return world_error != MPI_SUCCESS ? world_error : self_error;
}

int world(int* rank, int* size) {
  const int error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  return error != MPI_SUCCESS ? error : MPI_Comm_size(MPI_COMM_WORLD, size);
}

int node(int* rank, int* size) {
  int world_rank = 0;
  MPI_Comm shared = MPI_COMM_NULL;
  int error = MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &shared);
  if (error == MPI_SUCCESS) error = MPI_Comm_rank(shared, rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(shared, size);
  return error != MPI_SUCCESS ? error : MPI_Comm_free(&shared);
}

int isend(const void* data, int bytes, int to, int tag, MpiRequest* request) {
  MPI_Request started = MPI_REQUEST_NULL;
  const int error = MPI_Isend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &started);
  *request = to_bits(started);
  return error;
}

int irecv(void* data, int bytes, int from, int tag, MpiRequest* request) {
  MPI_Request started = MPI_REQUEST_NULL;
  const int error = MPI_Irecv(data, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &started);
  *request = to_bits(started);
  return error;
}

int test(MpiRequest* request, bool* done) {
  MPI_Request running = from_bits(*request);
  int flag = 0;
  const int error = MPI_Test(&running, &flag, MPI_STATUS_IGNORE);
  *request = to_bits(running);
  *done = flag != 0;
  return error;
}

int barrier() {
  return MPI_Barrier(MPI_COMM_WORLD);
}

int broadcast(void* data, int bytes, int root) {
  return MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

int abort(int exit_code) {
  return MPI_Abort(MPI_COMM_WORLD, exit_code);
}

int finalize() {
  return MPI_Finalize();
}

void error_text(int error, char* text, int size) {
  char whole[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(error, whole, &length);
  std::strncpy(text, whole, static_cast<size_t>(size) - 1);
  text[size - 1] = '\0';
}

constexpr MpiTable kTable = {kMpiTableVersion, initialize, world, node,     isend,     irecv, test,
                             barrier,          broadcast,  abort, finalize, error_text};

}  // namespace

}  // namespace dtrain

const dtrain::MpiTable* dtrain_mpi() {
  return &dtrain::kTable;
}
