/* device_plugin.h - the plug-ins: where they are found and what is accepted of them. */
#ifndef FRGI_DEVICE_PLUGIN_H
#define FRGI_DEVICE_PLUGIN_H

#include "device/device.h"

#pragma GCC visibility push(hidden)

/** The table of a kind: `host` for the cpu, that of the plug-in otherwise; FRG_NO_DEVICE with the
 *  reason in e.  A library that was loaded stays until the process ends. */
FRG_MUST_USE frg_status frgi_plugin_find(frg_device_kind kind, const frgi_device_ops **out,
                                         frgi_device_error *e);
/** "cuda:1" */
void frgi_plugin_name(frg_device which, char *out, size_t bytes);
/** Is the table one that this library can call?  The reason in e. */
bool frgi_plugin_fits(const frgi_device_ops *ops, frgi_device_error *e);

#pragma GCC visibility pop
#endif
