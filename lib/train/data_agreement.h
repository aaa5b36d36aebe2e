// Checks that the processes of a run have the same data.
#pragma once

#include <map>
#include <string>

#include "collective/world.h"
#include "data/splits/data_identity.h"

namespace dtrain {

/// Throws UserError in every process if the samples of any process differ from those of process 0. `mine`:
/// the identities of this process's splits, by name. To be called by all processes.
void check_data_agree(World& world, const std::map<std::string, DataIdentity>& mine);

}  // namespace dtrain
