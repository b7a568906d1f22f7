import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'backups',
  commands: {
    backup: { summary: 'Make a backup of everything', load: () => import('./cli/backup.ts') },
    database: {
      summary: 'Move the data to another database',
      commands: {
        copy: {
          summary: 'Copy the SQLite database of this home to a PostgreSQL server',
          load: () => import('./cli/copy.ts'),
        },
      },
    },
    restore: {
      summary: 'Restore a backup, or a copy of the database',
      load: () => import('./cli/restore.ts'),
    },
  },
})
