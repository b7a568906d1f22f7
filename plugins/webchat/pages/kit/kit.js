// What the pages of plugins share, for `import { call, element } from '../../kit/kit.js'`.
export { ApiError, call, follow, useKey } from './api.js'
export { attempt, openDialog } from './dialogs.js'
export { byId, element, facts, focusOn, replace, show, time, whileBusy } from './elements.js'
export { withKey } from './key-entry.js'
export { followChanges } from './live.js'
export { livePage } from './live-page.js'
export { openLogin } from './login.js'
export { showNavigation } from './navigation.js'
