// Where the project's configs and datasets are: where it was built from, or where the environment's
// DTRAIN_SOURCE_DIR says.
#pragma once

#include <cstdlib>
#include <string>

namespace dtrain::test {

inline std::string source_dir() {
  const char* said = std::getenv("DTRAIN_SOURCE_DIR");
  return said ? said : DTRAIN_SOURCE_DIR;
}

}  // namespace dtrain::test
