import { registerHooks } from 'node:module'

// A plugin in a temporary folder imports what the daemon gives to plugins, whatever package lies above that folder.
const repository = new URL('../../package.json', import.meta.url).href
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, /^(?:svc\/|valibot$)/.test(specifier) ? { ...context, parentURL: repository } : context),
})
