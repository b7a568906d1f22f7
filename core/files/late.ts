import type * as Folder from './folder.ts'
import type * as Open from './open.ts'
import type * as ReadArchive from './read-archive.ts'
import type * as Remove from './remove.ts'
import type * as Replace from './replace.ts'
import type { SharedFolders, SharedFoldersDeps } from './shared-folders.ts'

/** What works on files, evaluated with the first file and not with every start. */
export const inFolder: typeof Folder.inFolder = async (root, name, work, options) =>
  (await import('./folder.ts')).inFolder(root, name, work, options)
export const removeConfined: typeof Remove.removeConfined = async (root, name) =>
  (await import('./remove.ts')).removeConfined(root, name)
export const removeFolder: typeof Remove.removeFolder = async (path) => (await import('./remove.ts')).removeFolder(path)
export const openConfined: typeof Open.openConfined = async (root, name, mode, options) =>
  (await import('./open.ts')).openConfined(root, name, mode, options)
export const replaceConfined: typeof Replace.replaceConfined = async (root, name, content) =>
  (await import('./replace.ts')).replaceConfined(root, name, content)
export const syncFolder: typeof Replace.syncFolder = async (path) => (await import('./replace.ts')).syncFolder(path)
export const readArchive: typeof ReadArchive.readArchive = async (archive, limits, claim) =>
  (await import('./read-archive.ts')).readArchive(archive, limits, claim)
export const openSharedFolders = async <A extends object>(deps: SharedFoldersDeps<A>): Promise<SharedFolders<A>> =>
  new (await import('./shared-folders.ts')).SharedFolders(deps)
