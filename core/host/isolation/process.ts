/** Runs the code of one plugin in a process of its own. */
import { servePlugin } from 'svc/internal'

await servePlugin()
