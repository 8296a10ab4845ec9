"""What `freshlane doctor` looks at; each check gives findings, and changes nothing."""
