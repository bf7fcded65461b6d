#include "../sds.h"
