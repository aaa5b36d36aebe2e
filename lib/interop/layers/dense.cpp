#include "interop/keras/options.h"
#include "interop/layers/table.h"

namespace dtrain {

void add_dense_formats(std::vector<LayerFormats>& table) {
  table.push_back({"dense", keras_layer("Dense")});
}

}  // namespace dtrain
