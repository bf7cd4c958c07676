/* version.h - the version as a text, of the library and of the plug-ins that have to match it. */
#ifndef FRGI_VERSION_H
#define FRGI_VERSION_H

#include "fourge/fourge.h"

#define FRGI_TEXT_OF(x)      #x
#define FRGI_DOTTED(a, b, c) FRGI_TEXT_OF(a) "." FRGI_TEXT_OF(b) "." FRGI_TEXT_OF(c)
/** "0.1.0" */
#define FRGI_VERSION FRGI_DOTTED(FRG_VERSION_MAJOR, FRG_VERSION_MINOR, FRG_VERSION_PATCH)

#endif
