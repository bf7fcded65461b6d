#include "../hiredis.h"
