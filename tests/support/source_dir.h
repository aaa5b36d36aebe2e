// The folder with the project's configs and datasets: the source folder of the build, or DTRAIN_SOURCE_DIR if
// set in the environment.
#pragma once

#include <cstdlib>
#include <string>

namespace dtrain::test {

inline std::string source_dir() {
  const char* given = std::getenv("DTRAIN_SOURCE_DIR");
  return given ? given : DTRAIN_SOURCE_DIR;
}

}  // namespace dtrain::test
