#include "interop/keras/options.h"
#include "interop/layers/table.h"

namespace dtrain {

void add_embedding_formats(std::vector<LayerFormats>& table) {
  table.push_back({"embedding", keras_layer("Embedding")});
}

}  // namespace dtrain
