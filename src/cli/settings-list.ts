import { settingNames } from '../config/broker-configs.ts';
import { environmentName } from '../config/names.ts';
import { allowedWords } from '../config/schema.ts';
import { settingsTable } from '../config/settings.ts';

/** `keylane settings`: every setting with its default, meaning and bounds. */
export function settingsList(): string {
  const entries = settingNames.map((name) => {
    const setting = settingsTable[name];
    const lines = [
      `${name} = ${JSON.stringify(setting.default)}`,
      `    ${setting.doc}`,
      `    allowed: ${allowedWords(setting)}`,
      `    environment: ${environmentName(name)}`,
    ];
    return lines.join('\n');
  });
  return entries.join('\n\n');
}
