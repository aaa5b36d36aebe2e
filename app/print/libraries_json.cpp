#include "print/libraries_json.h"

#include "device/gpu_info.h"

namespace dtrain {

Json libraries_json() {
  Json libraries = Json::array();
  for (const GpuLibrary& library : opened_gpu_libraries())
    libraries.push(
        Json::object().set("name", library.name).set("version", library.version).set("path", library.path));
  return libraries;
}

}  // namespace dtrain
