/** Kafka's rules for topic names (org.apache.kafka.common.internals.Topic.validate). */

const lengthMax = 249;

/** What is wrong with the name, in Kafka's words; undefined if nothing is. */
export function topicNameError(name: string): string | undefined {
  if (name === '') return 'the empty string is not allowed';
  if (name === '.' || name === '..') return `'${name}' is not allowed`;
  if (name.length > lengthMax) {
    return `the length of '${name}' is longer than the max allowed length ${lengthMax}`;
  }
  if (!/^[a-zA-Z0-9._-]+$/.test(name)) {
    return (
      `'${name}' contains one or more characters other than ASCII alphanumerics, ` +
      "'.', '_' and '-'"
    );
  }
  return undefined;
}

/** Two names that differ only in `.` and `_` would be one in metrics; Kafka refuses the second. */
export function collisionKey(name: string): string {
  return name.replaceAll('.', '_');
}
