#include "interop/keras/options.h"
#include "interop/layers/table.h"

namespace dtrain {

void add_merge_formats(std::vector<LayerFormats>& table) {
  table.push_back({"add", keras_layer("Add")});
  table.push_back({"multiply", keras_layer("Multiply")});
  table.push_back({"concatenate", keras_layer("Concatenate")});
}

}  // namespace dtrain
