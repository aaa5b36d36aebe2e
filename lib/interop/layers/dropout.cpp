#include "interop/keras/options.h"
#include "interop/layers/table.h"

namespace dtrain {

void add_dropout_formats(std::vector<LayerFormats>& table) {
  table.push_back({"dropout", keras_layer("Dropout")});
}

}  // namespace dtrain
